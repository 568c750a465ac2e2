import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import fc from 'fast-check';
import { SendingApi } from '../../src/sending/api.ts';
import { proofCount } from '../support/proof-settings.ts';
import { startReceiver } from '../support/receiver.ts';
import type { TestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  type ApiDocument,
  documentOf,
  type Operation,
  replyChecker,
  seen,
  startDescribed,
} from './described-service.ts';

const RUNS = proofCount('PORTICO_API_RUNS', 250);
const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
const NDJSON = 'application/x-ndjson';

interface SecuredOperation extends Operation {
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
}

function operationsOf({ paths }: ApiDocument): readonly (readonly [string, string, SecuredOperation])[] {
  return Object.entries(paths)
    .filter(([path]) => /^\/(?:events|webhooks)/.test(path))
    .flatMap(([path, item]) =>
      METHODS.flatMap((method) =>
        item[method] === undefined ? [] : [[path, method, item[method]] as const],
      ),
    );
}

let service: TestService;
let receiver: Awaited<ReturnType<typeof startReceiver>>;
let document: ApiDocument;
before(async () => {
  receiver = await startReceiver();
  service = await startDescribed({}, undefined, { allowPrivate: true, backoff: 20, portal: { port: 0 } });
  document = await documentOf(service);
});
after(async () => {
  await service[Symbol.asyncDispose]();
  await receiver[Symbol.asyncDispose]();
});

test('a document describes every path of sending, and nothing else', () => {
  const { routes } = new SendingApi({} as never);
  const served = routes.map((route) =>
    route
      .replace(' ', ' /webhooks/')
      .replaceAll(/:(\w+)/g, '{$1}')
      .replace(/^\w+/, (name) => name.toLowerCase()),
  );
  assert.deepEqual(
    operationsOf(document)
      .map(([path, method]) => `${method} ${path}`)
      .toSorted(),
    [...served, 'post /events'].toSorted(),
  );
});

/** Sends a request, compares the reply with the document, and returns its body. */
async function send(
  operation: string,
  status: number,
  {
    parameters = {},
    query = '',
    body,
    headers = {},
  }: {
    readonly parameters?: Readonly<Record<string, string>>;
    readonly query?: string;
    readonly body?: unknown;
    readonly headers?: Readonly<Record<string, string>>;
  } = {},
  // biome-ignore lint/suspicious/noExplicitAny: bodies of many forms
): Promise<any> {
  const found = operationsOf(document).find(
    ([, , { operationId }]) =>
      operationId === (operation === 'publishEvent' ? 'events.publish' : `webhooks.${operation}`),
  );
  assert.ok(found, operation);
  const [path, method] = found;
  const target = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => parameters[name] ?? '');
  const reply = await seen(
    await fetch(`${service.urls.rest}${target}${query}`, {
      method: method.toUpperCase(),
      headers,
      body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
    }),
  );
  replyChecker(document)(path, method, reply);
  assert.equal(reply.status, status, `${operation}: ${reply.text}`);
  return reply.text === '' ? undefined : JSON.parse(reply.text);
}

test('the reply of every operation is as the document says', async () => {
  const type = 'invoice.paid';
  const tenant = 'acme';
  const parameters = { tenant };
  const schema = { type: 'object', required: ['id'] };
  await send('putEventType', 200, { parameters: { type }, body: { schema, example: { id: 7 } } });
  await send('putEventType', 400, { parameters: { type }, body: { schema: { type: 7 } } });
  await send('putEventType', 400, { parameters: { type: 'portico.test' }, body: {} });
  await send('readEventType', 200, { parameters: { type } });
  await send('listEventTypes', 200, { query: '?limit=1' });
  await send('putTenant', 200, { parameters, body: { description: 'Acme Ltd' } });
  await send('readTenant', 200, { parameters });
  await send('readTenant', 404, { parameters: { tenant: 'none' } });
  await send('listTenants', 200);
  await send('listTenants', 400, { query: '?limit=x' });
  await send('createEndpoint', 400, { parameters, body: { url: 'ftp://x' } });
  const settings = { url: `${receiver.url}/all`, types: ['*'], headers: { 'x-a': 'b' }, rate: '100/s' };
  const { id: endpoint } = await send('createEndpoint', 201, { parameters, body: settings });
  const own = { tenant, endpoint };
  await send('listEndpoints', 200, { parameters });
  await send('readEndpoint', 200, { parameters: own });
  await send('changeEndpoint', 200, { parameters: own, body: { description: 'x', rate: null } });
  await send('rotateSecret', 200, { parameters: own, body: { overlapHours: 1 } });
  await send('showSecrets', 200, { parameters: own });

  const event = { tenant, type, data: { id: 7 } };
  const headers = { 'idempotency-key': 'one' };
  const { id } = await send('publishEvent', 202, { body: event, headers });
  await send('publishEvent', 200, { body: event, headers });
  await send('publishEvent', 400, { body: { ...event, data: {} } });
  await send('publishEvent', 400, { body: {} });
  const lines = [event, { ...event, key: 'two' }].map((each) => JSON.stringify(each)).join('\n');
  await send('publishEvent', 202, { body: lines, headers: { 'content-type': NDJSON } });
  const many = `${JSON.stringify(event)}\n`.repeat(1_001);
  await send('publishEvent', 400, { body: many, headers: { 'content-type': NDJSON } });
  await waitFor('the events', () => receiver.at('/all').length === 3);
  const sent = { ...own, event: id };
  await waitFor('the end', async () => {
    const { items } = await send('listSentEvents', 200, { parameters: own, query: '?status=done' });
    return items.length === 3;
  });
  await send('listAttempts', 200, { parameters: sent });
  await send('readEndpointStats', 200, { parameters: own });
  await send('listEvents', 200, { parameters, query: `?type=${type}&limit=1` });
  await send('readEvent', 200, { parameters: sent });
  await send('resendEvent', 202, { parameters: sent });
  await send('sendTestEvent', 202, { parameters: own });
  await send('sendTestEvent', 202, { parameters: own, body: { type } });
  await send('replayEvents', 200, { parameters: own, body: { since: '1h' } });
  await send('replayEvents', 400, { parameters: own, body: {} });
  await send('createPortalLink', 201, { parameters, body: { minutes: 5 } });
  await send('changeEndpoint', 200, { parameters: own, body: { enabled: false } });
  await send('resendEvent', 400, { parameters: sent });
  await send('readEndpoint', 200, { parameters: own });
  await send('removeEndpoint', 204, { parameters: own });
  await send('removeTenant', 204, { parameters });
  await send('removeEventType', 204, { parameters: { type } });
});

test('whatever is asked of a path of sending, the reply is as the document says', async () => {
  const check = replyChecker(document);
  const names = fc.constantFrom('acme', 'other', 'a.b', '1', '%20', 'x'.repeat(70));
  const request = fc.constantFrom(...operationsOf(document)).chain(([path, method]) =>
    fc.record({
      path: fc.constant(path),
      method: fc.constant(method),
      parts: fc.array(names, { minLength: 3, maxLength: 3 }),
      query: fc.constantFrom(
        '',
        'limit=2',
        'limit=x',
        'after=1',
        'before=0',
        'status=dead',
        'status=x',
        'type=a&type=b',
      ),
      type: fc.constantFrom('application/json', NDJSON, 'text/plain'),
      accept: fc.constantFrom('application/json', 'application/problem+json', '*/*'),
      key: fc.constantFrom(undefined, 'k', 'ü', ''),
      body: fc.constantFrom(
        ...['', '{', '[]', '{}', '"x"', '{"__proto__":1}', '['.repeat(100), ' '.repeat(5_000_000)],
        '{"tenant":"acme","type":"a","data":1}',
        '{"tenant":"acme","type":"a","data":1}\n{"tenant":"acme","type":"a","data":2,"key":"k"}\n',
        '{"tenant":"acme","type":"a","data":1,"runAt":"2100-01-01T00:00:00Z","other":1}',
        '{"url":"http://127.0.0.1:1/"}',
        '{"url":"https://example.invalid","filter":{"a":{"gt":[]}}}',
        '{"enabled":false}',
        '{"since":"1h","types":["a"]}',
        '{"schema":{"type":"object"},"example":1}',
        '{"description":"x","minutes":5,"overlapHours":-1}',
      ),
    }),
  );
  await fc.assert(
    fc.asyncProperty(request, async ({ path, method, parts, query, type, accept, key, body }) => {
      let part = 0;
      const target = path.replaceAll(/\{\w+\}/g, () => parts[part++] ?? '');
      const reply = await fetch(`${service.urls.rest}${target}?${query}`, {
        method: method.toUpperCase(),
        headers: { 'content-type': type, accept, ...(key !== undefined && { 'idempotency-key': key }) },
        ...(method === 'get' ? {} : { body }),
      });
      check(path, method, await seen(reply));
    }),
    { numRuns: RUNS },
  );
});

test('the document with sending is sound OpenAPI 3.1, and says which scopes each operation needs', async () => {
  const config = await createConfig({ extends: ['recommended'] });
  const problems = await lintFromString({
    source: JSON.stringify(document),
    absoluteRef: '/openapi.json',
    config,
  });
  assert.deepEqual(
    problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer]),
    [],
  );
  await using secured = await startDescribed(
    { API_REQUIRED: 'all', API_TOKENS: 'a-token-of-some-length-0001' },
    undefined,
    true,
  );
  const operations = operationsOf(await documentOf(secured));
  assert.equal(operations.length, operationsOf(document).length);
  for (const [path, method, { security, responses }] of operations) {
    const scope = path === '/events' ? 'events:write' : method === 'get' ? 'webhooks:read' : 'webhooks:write';
    assert.deepEqual(security, [{ bearer: [scope] }], `${method} ${path}`);
    assert.ok('401' in responses && '403' in responses);
  }
});
