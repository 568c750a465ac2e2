import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { postgresUrl, withoutPostgres } from './databases.ts';
import { startTestService, type TestService } from './service.ts';

/** The engines on which events are sent to the endpoints of customers. */
export const sendingEngines: Readonly<
  Record<string, { readonly skip: string | false; url(): Promise<string> | undefined }>
> = {
  sqlite: { skip: false, url: () => undefined },
  postgres: { skip: withoutPostgres ?? false, url: postgresUrl },
};

/** The same with databases that outlive a service; those of SQLite are files in a folder. */
export const storedEngines: Readonly<
  Record<string, { readonly skip: string | false; url(folder: string): Promise<string> }>
> = {
  sqlite: { skip: false, url: async (folder) => `sqlite:${join(folder, 'portico.db')}` },
  postgres: { skip: withoutPostgres ?? false, url: async () => (await postgresUrl()) ?? '' },
};

/** Runs a statement on a database as another program. */
export async function runOn(url: string, statement: string): Promise<void> {
  if (url.startsWith('sqlite:')) {
    using db = new DatabaseSync(url.replace('sqlite:', ''), { timeout: 5_000 });
    db.exec(statement);
    return;
  }
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** A reply of the API of sending. */
export interface SendingReply {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks at members of many shapes
  readonly body: any;
  readonly headers: Headers;
}

/** A service that sends events to endpoints, with the API as a test calls it. */
export interface SendingService extends AsyncDisposable {
  readonly service: TestService;
  call(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<SendingReply>;
  /** Publishes an event, which must be accepted; returns its id. */
  publish(event: object, headers?: Readonly<Record<string, string>>): Promise<string>;
  /** Makes an endpoint, which must be accepted. */
  endpoint(tenant: string, settings: object): Promise<{ readonly id: string; readonly secret: string }>;
}

/** Starts one; `sending` has the options, `more` is the rest of the module's object as text, `own` more environment. */
export async function startSending(
  url: string | undefined,
  sending: object = {},
  more = '',
  own: Readonly<Record<string, string>> = {},
): Promise<SendingService> {
  const options = { allowPrivate: true, backoff: 20, maxBackoff: 200, ...sending };
  const service = await startTestService({
    module: `export default { ${more} webhook: { sending: ${JSON.stringify(options)} } };`,
    env: { ...(url !== undefined && { DATABASE_URL: url }), ...own },
    listens: true,
  });
  const call: SendingService['call'] = async (method, path, body, headers = {}) => {
    const isText = typeof body === 'string';
    const response = await fetch(`${service.urls.rest}${path}`, {
      method,
      headers: { ...(body !== undefined && !isText && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: isText ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      body: text === '' ? undefined : JSON.parse(text),
      headers: response.headers,
    };
  };
  return {
    service,
    call,
    async publish(event, headers) {
      const reply = await call('POST', '/events', event, headers);
      assert.ok(reply.status === 202 || reply.status === 200, JSON.stringify(reply.body));
      return reply.body.id;
    },
    async endpoint(tenant, settings) {
      const reply = await call('POST', `/webhooks/tenants/${tenant}/endpoints`, settings);
      assert.equal(reply.status, 201, JSON.stringify(reply.body));
      return reply.body;
    },
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}
