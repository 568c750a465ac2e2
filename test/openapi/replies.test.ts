import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { proofCount } from '../support/proof-settings.ts';
import type { TestService } from '../support/service.ts';
import {
  type ApiDocument,
  documentOf,
  METHODS,
  type Operation,
  replyChecker,
  seen,
  startDescribed,
} from './described-service.ts';

const RUNS = proofCount('PORTICO_API_RUNS', 250);

/** A dump stops the process, a profile takes seconds, a shutdown ends the service. */
const NOT_CALLED = new Set(['dumpHeap', 'recordCpuProfile', 'shutDown']);

const VALUES: Readonly<Record<string, readonly string[]>> = {
  id: ['1', '2', '99', 'x', '%20'],
  path: ['db', 'liveness', 'none', 'a%2Fb'],
  requiredMetricName: ['process.uptime', 'http.server.requests', 'none'],
  toMatch: ['REST_PORT', 'rest.port', 'none'],
  prefix: ['rest', 'm', 'none'],
  name: ['rest', 'ROOT', 'none'],
  door: ['rest', 'webhook', 'management', 'graphql', 'none'],
  part: ['x', '%20'],
  tag: ['outcome:x', 'uri:/users', 'none', ''],
  for: ['PT1S', 'none'],
  status: ['dead', 'unhandled', 'none'],
  limit: ['5', '0'],
  sort: ['-name,id', 'none'],
  fields: ['id,name', 'none'],
  q: ['a'],
  email: ['x@y'],
  since: ['2h', 'none'],
  window: ['3h', 'none'],
  after: ['0', 'none'],
};

const JSON_TYPE = 'application/json';
const ACCEPTS = [
  ...['*/*', JSON_TYPE, 'application/problem+json', 'text/plain', 'text/html', 'image/png'],
  'application/vnd.spring-boot.actuator.v2+json',
  'application/openmetrics-text',
  'application/x-ndjson',
  'text/csv',
];
const TYPES = [
  ...[JSON_TYPE, 'text/plain', 'application/x-www-form-urlencoded'],
  ...['application/x-ndjson', 'text/csv', 'application/merge-patch+json'],
];
const BODIES = [
  '{"name":"N","email":"n@x"}',
  '{"name":7}',
  '{"configuredLevel":"debug","for":"PT1S"}',
  '{"configuredLevel":"none"}',
  '{"action":"discard"}',
  '{"action":"replay"}',
  '{"event":"new_commit","data":{}}',
  ...['', '{', '[]', '"x"', '{"__proto__":1}', '['.repeat(70), ' '.repeat(70_000)],
  'payload=%7B%7D',
  'name,email\nCy,cy@x\n',
  '[{"name":"N","email":"n@x"},{"name":""}]',
];

let service: TestService;
let document: ApiDocument;
before(async () => {
  service = await startDescribed();
  document = await documentOf(service);
});
after(() => service[Symbol.asyncDispose]());

function operations(): readonly (readonly [path: string, method: string, operation: Operation])[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, operation]) =>
      METHODS.includes(method) && !NOT_CALLED.has(operation.operationId)
        ? [[path, method, operation] as const]
        : [],
    ),
  );
}

test('whatever is asked of a path that is described, the reply is as the document says', async () => {
  const check = replyChecker(document);
  const { items } = (await (await fetch(`${service.urls.management}/actuator/deliveries`)).json()) as {
    items: readonly { id: string }[];
  };
  const anyOf = (name: string) =>
    fc.constantFrom(...(VALUES[name] ?? ['x']), ...(name === 'id' ? items.map(({ id }) => id) : []));
  const request = fc.constantFrom(...operations()).chain(([path, method, { tags, parameters = [] }]) =>
    fc.record({
      path: fc.constant(path),
      method: fc.constant(method),
      door: fc.constant(tags[0] ?? ''),
      inPath: fc.record(
        Object.fromEntries([...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, anyOf(name)])),
      ),
      query: fc.record(
        Object.fromEntries(
          parameters.filter((each) => each.in === 'query').map(({ name }) => [name, anyOf(name)]),
        ),
        { requiredKeys: [] },
      ),
      accept: fc.constantFrom(...ACCEPTS),
      prefer: fc.constantFrom('handling=strict', 'transaction=all', 'transaction=line', 'x'),
      type: fc.constantFrom(...TYPES),
      body: fc.constantFrom(...BODIES),
    }),
  );
  await fc.assert(
    fc.asyncProperty(request, async ({ path, method, door, inPath, query, accept, prefer, type, body }) => {
      const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => inPath[name] ?? '');
      const target = `${service.urls[door]}${filled}?${new URLSearchParams(query as Record<string, string>)}`;
      const headers = { accept, prefer, 'content-type': type };
      const reply = await fetch(target, {
        method: method.toUpperCase(),
        headers,
        ...(method === 'get' ? {} : { body }),
      });
      check(path, method, await seen(reply));
    }),
    { numRuns: RUNS },
  );
});

test('each kind of reply is described', async () => {
  const check = replyChecker(document);
  const strict = { prefer: 'handling=strict' };
  const problem = { accept: 'application/problem+json' };
  const user = '{"name":"N","email":"n@x"}';
  const kinds: readonly (readonly [string, string, string, Record<string, string>, string?])[] = [
    ['rest', '/users', 'post', strict, user],
    ['rest', '/users', 'post', problem, '{'],
    ['rest', '/users', 'post', {}, ' '.repeat(70_000)],
    ['rest', '/users', 'post', { 'content-type': 'text/csv' }, 'name,email\nCy,cy@x\n'],
    ['rest', '/users', 'post', { prefer: 'transaction=all' }, '[{"name":""}]'],
    ['rest', '/users', 'get', { accept: 'text/csv' }],
    ['rest', '/users', 'get', { accept: 'text/event-stream', 'last-event-id': '9999.1' }],
    ['rest', '/users/{id}', 'get', strict],
    ['rest', '/users/{id}', 'get', problem],
    ['webhook', '/webhook/hub', 'post', {}, '{}'],
    ['webhook', '/webhook', 'post', problem, '{'],
    ['management', '/actuator/loggers/{name}', 'post', { 'content-type': JSON_TYPE }, '{}'],
    ['management', '/actuator/health/{path}', 'get', problem],
  ];
  const statuses: number[] = [];
  for (const [door, path, method, headers, body] of kinds) {
    const target = `${service.urls[door]}${path.replace('{id}', '999').replace(/\{\w+\}/, 'rest')}`;
    const reply = await fetch(target, { method: method.toUpperCase(), headers, body: body ?? null });
    check(path, method, await seen(reply));
    statuses.push(reply.status);
  }
  assert.deepEqual(statuses, [201, 400, 413, 200, 400, 200, 410, 404, 200, 401, 400, 204, 404]);
});

test('a document describes every route that the doors serve, and nothing else', async () => {
  const reply = await fetch(`${service.urls.management}/actuator/mappings`);
  const { contexts } = (await reply.json()) as {
    contexts: { portico: { mappings: { dispatcherServlets: Record<string, readonly Listed[]> } } };
  };
  const served = Object.entries(contexts.portico.mappings.dispatcherServlets)
    .filter(([door]) => door !== 'graphql')
    .flatMap(([, routes]) => routes)
    .map(({ details }) => details.requestMappingConditions.patterns[0] ?? '')
    // A slash behind a path is no segment; the front pages, the console and the files of the docs are for browsers.
    .map((path) => path.replace(/(?<=.)\/$/, '').replace(/\{\*(\w+)\}|\*$/, '{path}'))
    .filter((path) => path !== '/' && !/\/docs\/.|\/console(?:$|\/)/.test(path));
  const named = (path: string) => path.replace(/\{\w+\}|:\w+/g, '{}');
  assert.deepEqual(
    [...new Set(Object.keys(document.paths).map(named))].sort(),
    [...new Set(served.map(named))].sort(),
  );
});

interface Listed {
  readonly details: { readonly requestMappingConditions: { readonly patterns: readonly string[] } };
}
