import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after } from 'node:test';
import { postgresUrl, withoutPostgres } from './databases.ts';
import { startTestService } from './service.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { waitFor } from './wait-for.ts';

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

async function sqliteUrl(): Promise<string> {
  const folder = await temporaryFolder();
  after(() => folder[Symbol.asyncDispose]());
  return `sqlite:${join(folder.path, 'webhooks.db')}`;
}

/** The URLs of empty databases, by engine; each is removed when the test that asks has ended. */
export const engineUrls: Readonly<Record<string, () => Promise<string>>> = {
  SQLite: sqliteUrl,
  ...(withoutPostgres === undefined && { PostgreSQL: postgresUrl }),
};

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
  });
  await service.listen();
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
