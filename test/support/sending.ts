import assert from 'node:assert/strict';
import { postgresUrl, withoutPostgres } from './databases.ts';
import { startTestService, type TestService } from './service.ts';

/** The engines on which events are sent to the endpoints of customers. */
export const sendingEngines: Readonly<
  Record<string, { readonly skip: string | false; url(): Promise<string> | undefined }>
> = {
  sqlite: { skip: false, url: () => undefined },
  postgres: { skip: withoutPostgres ?? false, url: postgresUrl },
};

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
