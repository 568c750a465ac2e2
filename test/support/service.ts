import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadConfig } from '../../src/app/load-config.ts';
import { createService, type Service } from '../../src/app/service.ts';
import { withLimits } from './limits.ts';
import { captureLog, type LogCapture } from './log-capture.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { waitFor } from './wait-for.ts';

/** How a service under test is set up. */
export interface Setup {
  /** Settings by their environment names, limits by names like these. They win over the ones that every test service has. */
  readonly env?: Readonly<Record<string, string>>;
  /** The text of a `portico.config.ts`; it is written into the working folder of the service. */
  readonly module?: string;
  /** Where the data are: in memory (default), or in a file that outlives a restart. */
  readonly database?: 'memory' | 'file';
  /** Whether it listens at once. */
  readonly listens?: boolean;
}

/** A service in a working folder of its own, which disposing of it removes. */
export interface TestService extends AsyncDisposable {
  /** The service that runs now; another one after a restart. */
  readonly current: Service;
  /** Base URLs of the doors that listen; empty before `listen`. */
  readonly urls: Readonly<Record<string, string>>;
  /** What it has logged since the first start. */
  readonly log: LogCapture;
  readonly folder: string;
  readonly databaseUrl: string;
  /** Opens the doors on free ports. */
  listen(): Promise<void>;
  /** Stops it and starts it again on the same folder, listening if it listened before. */
  restart(): Promise<void>;
}

/**
 * Free ports, no answering (the clients of a test are gone when it stops its service), and the names by which raw requests
 * of tests ask for the doors.
 */
const testSettings = {
  HTTP_HOSTS: 'x,h',
  GRAPHQL_PORT: '0',
  REST_PORT: '0',
  MANAGEMENT_PORT: '0',
  PORT: '0',
  SHUTDOWN_PRE_STOP_DELAY: '0',
};

/** Starts a service from real configuration: environment, configuration module, working folder. */
export async function startTestService(setup: Setup = {}): Promise<TestService> {
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await temporaryFolder()).path;
  if (setup.module !== undefined) await writeFile(join(folder, 'portico.config.ts'), setup.module);
  const database = setup.database === 'file' ? `sqlite:${join(folder, 'portico.db')}` : 'sqlite::memory:';
  const env = { ...testSettings, DATABASE_URL: database, ...withLimits(setup.env ?? {}, folder) };
  const log = captureLog();
  const start = async () =>
    createService(await loadConfig({ argv: [], env, cwd: folder }), { logStream: log.stream });

  let current = await start();
  let urls: Record<string, string> = {};
  let listening = false;
  cleanup.defer(() => current.stop());
  const listen = async () => {
    urls = urlsOf(await current.listen());
    listening = true;
  };
  if (setup.listens === true) await listen();
  const rest = cleanup.move();
  return {
    get current() {
      return current;
    },
    get urls() {
      return urls;
    },
    log,
    folder,
    databaseUrl: env.DATABASE_URL,
    listen,
    async restart() {
      await current.stop();
      current = await start();
      if (listening) await listen();
    },
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}

function urlsOf(doors: object): Record<string, string> {
  const urls: Record<string, string> = {};
  for (const [door, url] of Object.entries(doors)) if (typeof url === 'string') urls[door] = url;
  return urls;
}

/** A delivery as the management door shows it. */
export interface ShownDelivery {
  readonly status: string;
  readonly jobs: readonly {
    readonly target: string;
    readonly status: string;
    readonly attempts: number;
    readonly error: string | null;
  }[];
}

/** A service that receives webhooks, with quick retries; `module` is its configuration module. */
export async function startWebhooks(url: string, module: string, env: Readonly<Record<string, string>> = {}) {
  const service = await startTestService({
    module,
    env: {
      DATABASE_URL: url,
      INTERFACES: 'webhook,management',
      WEBHOOK_BACKOFF: '1',
      WEBHOOK_MAX_BACKOFF: '50',
      MANAGEMENT_INCLUDE: 'deliveries,prometheus',
      MANAGEMENT_ENDPOINT_ACCESS: 'deliveries=unrestricted',
      LOG_LEVEL: 'debug',
      ...env,
    },
    listens: true,
  });
  const management = (path: string, init?: RequestInit) =>
    fetch(`${service.urls.management}/actuator${path}`, init);
  const show = async (id: string) => (await (await management(`/deliveries/${id}`)).json()) as ShownDelivery;
  return {
    service,
    show,
    metrics: async () => (await management('/prometheus')).text(),
    logged: (msg: string) => service.log.entries.filter((entry) => entry.msg === msg),
    /** Sends a delivery; gives its id. */
    async post(body: unknown): Promise<string> {
      const text = JSON.stringify(body);
      const reply = await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', body: text });
      assert.equal(await reply.text(), 'Webhook received');
      return reply.headers.get('x-delivery-id') ?? '';
    },
    /** The delivery, once it has that status. */
    until: (id: string, status: string) =>
      waitFor(`${id} to be ${status}`, async () => {
        const shown = await show(id);
        return shown.status === status && shown;
      }),
    async replay(id: string): Promise<number> {
      const headers = { 'content-type': 'application/json' };
      const init = { method: 'POST', headers, body: '{"action":"replay"}' };
      return (await management(`/deliveries/${id}`, init)).status;
    },
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}
