import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createService, type Service } from '../../src/app/service.ts';
import { loadConfig } from '../../src/config/load.ts';
import { withLimits } from './limits.ts';
import { captureLog, type LogCapture } from './log-capture.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** How a service under test is set up. */
export interface Setup {
  /** Settings by their environment names, limits by names like these. They win over the ones that every test service has. */
  readonly env?: Readonly<Record<string, string>>;
  /** The text of a `portico.config.ts`; it is written into the working folder of the service. */
  readonly module?: string;
  /** Where the data are: in memory (default), or in a file that outlives a restart. */
  readonly database?: 'memory' | 'file';
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
  const rest = cleanup.move();
  const listen = async () => {
    urls = urlsOf(await current.listen());
    listening = true;
  };
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
