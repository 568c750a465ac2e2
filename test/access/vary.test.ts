import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { test } from 'node:test';
import { startTestService, type TestService } from '../support/service.ts';
import { moduleWith } from './support/tokens.ts';

const PAGE = 'https://app.example.com';
const ENV = {
  INTERFACES: 'rest,graphql',
  API_REQUIRED: 'write',
  REST_CORS_ORIGINS: PAGE,
  GRAPHQL_CORS_ORIGINS: PAGE,
};
const PROBLEM = { accept: 'application/problem+json' };
const EVENTS = { accept: 'text/event-stream' };
const JSON_TYPE = { 'content-type': 'application/json' };
const STRICT = { prefer: 'handling=strict' };
const PREFLIGHT = {
  'access-control-request-method': 'DELETE',
  'access-control-request-headers': 'authorization',
};
const SUBSCRIPTION = 'subscription { userCreated { id } }';

interface Sample {
  readonly what: string;
  readonly ask: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly vary: string;
  /** Whether the fast path answers it. */
  readonly isFast?: true;
}

const SAMPLES: Readonly<Record<'rest' | 'graphql', readonly Sample[]>> = {
  rest: [
    { what: 'a refusal', ask: 'DELETE /delete/9', vary: 'origin', isFast: true },
    {
      what: 'a refusal as a problem',
      ask: 'DELETE /delete/9',
      headers: PROBLEM,
      vary: 'origin, accept',
      isFast: true,
    },
    {
      what: 'a status by preference',
      ask: 'GET /users/9',
      headers: STRICT,
      vary: 'origin, prefer',
      isFast: true,
    },
    {
      what: 'a problem with a status by preference',
      ask: 'GET /users/9',
      headers: { ...STRICT, ...PROBLEM },
      vary: 'origin, accept, prefer',
      isFast: true,
    },
    { what: 'a list', ask: 'GET /users', vary: 'origin', isFast: true },
    {
      what: 'an export',
      ask: 'GET /users',
      headers: { accept: 'text/csv' },
      vary: 'origin, accept',
      isFast: true,
    },
    { what: 'changes', ask: 'GET /users', headers: EVENTS, vary: 'origin, accept' },
    { what: 'the head of changes', ask: 'HEAD /users', headers: EVENTS, vary: 'origin, accept' },
    { what: 'the head of a list', ask: 'HEAD /users', vary: 'origin' },
    { what: 'an unknown path', ask: 'GET /nothing', headers: PROBLEM, vary: 'origin, accept' },
    { what: 'a wrong method', ask: 'POST /delete/9', headers: PROBLEM, vary: 'origin, accept' },
    { what: 'OPTIONS', ask: 'OPTIONS /users', vary: 'origin' },
    {
      what: 'a preflight',
      ask: 'OPTIONS /users',
      headers: PREFLIGHT,
      vary: 'origin, access-control-request-headers',
    },
  ],
  graphql: [
    {
      what: 'a result',
      ask: 'POST /graphql',
      headers: JSON_TYPE,
      body: '{"query":"{ __typename }"}',
      vary: 'origin',
      isFast: true,
    },
    {
      what: 'a refusal as a problem',
      ask: 'POST /graphql',
      headers: { ...JSON_TYPE, ...PROBLEM },
      body: '{',
      vary: 'origin, accept',
      isFast: true,
    },
    { what: 'a result by GET', ask: 'GET /graphql?query=%7B__typename%7D', vary: 'origin, accept' },
    { what: 'the page', ask: 'GET /graphql', headers: { accept: 'text/html' }, vary: 'origin, accept' },
    {
      what: 'a subscription by POST',
      ask: 'POST /graphql',
      headers: { ...JSON_TYPE, ...EVENTS },
      body: JSON.stringify({ query: SUBSCRIPTION }),
      vary: 'origin',
    },
    {
      what: 'a subscription by GET',
      ask: `GET /graphql?query=${encodeURIComponent(SUBSCRIPTION)}`,
      headers: EVENTS,
      vary: 'origin, accept',
    },
    { what: 'OPTIONS', ask: 'OPTIONS /graphql', vary: 'origin' },
    { what: 'an unknown path', ask: 'GET /nothing', headers: PROBLEM, vary: 'origin, accept' },
    { what: 'a wrong method', ask: 'PUT /graphql', headers: PROBLEM, vary: 'origin, accept' },
    {
      what: 'a preflight',
      ask: 'OPTIONS /graphql',
      headers: PREFLIGHT,
      vary: 'origin, access-control-request-headers',
    },
  ],
};

/** The fields Vary of a reply, in lower case, one after the other. */
async function varyOf(agent: Agent, url: string, { ask, headers, body }: Sample): Promise<string> {
  const [method, path] = ask.split(' ', 2);
  const sent = request(`${url}${path}`, { agent, method, headers: { origin: PAGE, ...headers } });
  sent.end(body);
  const [reply] = (await once(sent, 'response')) as [IncomingMessage];
  const { rawHeaders: raw } = reply;
  // A stream has no end.
  if (reply.headers['content-type']?.startsWith('text/event-stream')) reply.destroy();
  else await reply.resume().toArray();
  const fields = raw.flatMap((name, i) => (i % 2 === 0 && name.toLowerCase() === 'vary' ? [raw[i + 1]] : []));
  return fields.join(' | ').toLowerCase();
}

/** All samples of a service, each asked twice on a connection: the first request of one is never the fast path's. */
async function checkAll(
  service: TestService,
  fast: boolean,
  name: (vary: string) => string = (vary) => vary,
) {
  let byNode = 0;
  for (const { server } of Object.values(service.current.doors)) server.on('request', () => byNode++);
  for (const [door, samples] of Object.entries(SAMPLES)) {
    for (const sample of samples) {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const before = byNode;
      for (const nth of ['first', 'second']) {
        const vary = await varyOf(agent, service.urls[door] ?? '', sample);
        assert.equal(vary, name(sample.vary), `${door}, ${sample.what}, ${nth} request`);
      }
      agent.destroy();
      assert.equal(byNode - before, fast && sample.isFast ? 1 : 2, `the transport of ${sample.what}`);
    }
  }
}

for (const fastPath of ['true', 'false']) {
  test(`fast path ${fastPath}: a reply has one Vary, with the names of all who have a reason`, async () => {
    await using service = await startTestService({
      module: moduleWith(),
      env: { ...ENV, HTTP_FAST_PATH: fastPath },
    });
    await service.listen();
    await checkAll(service, fastPath === 'true');
  });
}

test('what a hook of a setup has said in Vary stays, and no name comes twice', async () => {
  const setup = `setup: (app) => app.addHook('onRequest', async (request, reply) => {
    reply.header('vary', 'Accept-Encoding, Origin');
  })`;
  await using service = await startTestService({
    module: moduleWith().replace(
      'export default {',
      `export default { rest: { ${setup} }, graphql: { ${setup} },`,
    ),
    env: ENV,
  });
  await service.listen();
  await checkAll(service, false, (vary) => `accept-encoding, ${vary}`);
});
