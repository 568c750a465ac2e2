import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { connectSocket } from '../graphql/support/socket-client.ts';
import { engineUrls } from '../support/databases.ts';
import { instrument, instrumented, SENDER, TRACE, traced } from '../support/instrumented.ts';
import { type ReceivedSpan, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { startPortico } from '../support/portico-process.ts';
import { forwards, startReceiver } from '../support/receiver.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const ERROR = 2;

/** A service with the file of the guide; its event `flaky` fails once, at a handler and at a forward. */
async function start(url: string, env: Readonly<Record<string, string>>) {
  await using cleanup = new AsyncDisposableStack();
  const otlp = cleanup.use(await startOtlpReceiver());
  const receiver = cleanup.use(
    await startReceiver({
      '/flaky': (response, attempt) => response.writeHead(attempt === 1 ? 500 : 204).end('secret'),
    }),
  );
  const folder = cleanup.use(await temporaryFolder());
  await instrument(folder.path);
  const module = forwards(
    receiver.url,
    `flaky: to('/flaky', { events: ['flaky'] }), in: to('/in', { events: ['plain'] })`,
  );
  const handlers = `let attempts = 0;
    const flaky = () => { if (attempts++ === 0) throw new RangeError('secret'); };`;
  await writeFile(
    join(folder.path, 'portico.config.ts'),
    `${handlers}${module.replace('webhook: {', 'webhook: { handlers: { flaky },')}`,
  );
  const portico = cleanup.use(
    startPortico({
      cwd: folder.path,
      env: { ...instrumented(otlp.url), DATABASE_URL: url, WEBHOOK_BACKOFF: '1', ...env },
    }),
  );
  await portico.ready();
  const post = (door: string, path: string, body: string, headers: Readonly<Record<string, string>>) =>
    fetch(`${portico.urls[door]}${path}`, { method: 'POST', headers: { ...JSON_TYPE, ...headers }, body });
  const all = cleanup.move();
  return {
    portico,
    spans: otlp.spans,
    receiver,
    post,
    /** All spans, once the service has ended. */
    async stop(): Promise<readonly ReceivedSpan[]> {
      portico.child.kill('SIGTERM');
      assert.equal(await portico.exited(), 0);
      return otlp.spans;
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Parent and name of each span; its door or attempt, status and error. */
const EXPECTED = [
  'POST /graphql > INSERT users:  ',
  'POST /graphql > SELECT users:  ',
  'POST /graphql > SELECT users:  ',
  'POST /webhook > INSERT deliveries:  ',
  'POST /webhook > POST: 1 500 500',
  'POST /webhook > POST: 2 204 ',
  'POST /webhook > process flaky: 1  RangeError',
  'POST /webhook > process flaky: 2  ',
  'sender > GET /actuator/health: management 200 ',
  'sender > GET /graphql: graphql 101 ',
  'sender > GET /users: rest 200 ',
  'sender > GET: rest 404 ',
  'sender > POST /graphql: graphql 200 ',
  'sender > POST /graphql: graphql 200 ',
  'sender > POST /graphql: graphql 200 ',
  'sender > POST /webhook: webhook  client_gone',
  'sender > POST /webhook: webhook 200 ',
].map((line) => line.trim());

/** Leaves in the middle of a request. */
async function leaveEarly(url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const { traceparent } = traced;
  const head = `POST /webhook HTTP/1.1\r\nHost: localhost\r\nTraceparent: ${traceparent}\r\nContent-Length: 9\r\n\r\n{`;
  socket.write(head, () => socket.destroy());
  await once(socket, 'close');
}

for (const [engine, urlOf] of Object.entries(engineUrls)) {
  test(`every door has spans, and so has each attempt that fails, on ${engine}`, async () => {
    await using service = await start(await urlOf(), {
      GRAPHQL_USERS: 'database',
      OTEL_BSP_SCHEDULE_DELAY: '200',
    });
    const { urls } = service.portico;
    const ask = async (query: string, headers = {}) =>
      (
        await service.post('graphql', '/graphql', JSON.stringify({ query }), { ...traced, ...headers })
      ).text();
    await ask('mutation { createUser(name: "A", email: "a@b") { id } }');
    await ask('{ users { id } }');
    await ask('{ users { id } }', { accept: 'text/event-stream' });
    await fetch(`${urls.management}/actuator/health`, { headers: traced });
    await fetch(`${urls.rest}/nothing`, { headers: traced });
    const client = await connectSocket(`${urls.graphql}/graphql`, { headers: traced });
    client.subscribe('1', '{ users { id } }');
    assert.equal((await client.next()).type, 'next');
    client.socket.terminate();
    await service.post('webhook', '/webhook', '{"event":"flaky"}', traced);
    await waitFor('the forward', () => service.receiver.at('/flaky').length === 2);

    // It ends when its client leaves, and nothing is missing.
    const leaving = new AbortController();
    const followed = await fetch(`${urls.rest}/users`, {
      headers: { ...traced, accept: 'text/event-stream' },
      signal: leaving.signal,
    });
    assert.equal(followed.status, 200);
    leaving.abort();
    await leaveEarly(urls.webhook ?? '');
    await waitFor('the spans', () => service.spans.length >= EXPECTED.length);

    const spans = await service.stop();
    const byId = new Map(spans.map((span) => [span.spanId, span]));
    const told = spans.map(({ name, traceId, parentSpanId = '', attributes, status }) => {
      assert.equal(traceId, TRACE, name);
      const parent = parentSpanId === SENDER ? 'sender' : byId.get(parentSpanId)?.name;
      const door = attributes['portico.door'] ?? attributes['portico.attempt'] ?? '';
      const code = attributes['http.response.status_code'] ?? '';
      const error = status.code === ERROR ? attributes['error.type'] : '';
      return `${parent} > ${name}: ${door} ${code} ${error}`.trim();
    });
    assert.deepEqual(told.toSorted(), EXPECTED);
    assert.doesNotMatch(JSON.stringify(spans), /secret/);
  });
}

test('what is not chosen is not recorded, and its trace goes on', async () => {
  const [urlOf = assert.fail('no engine')] = Object.values(engineUrls);
  await using service = await start(await urlOf(), { TRACING_ONE_IN: '1000000000' });
  const { urls } = service.portico;
  const unsampled = { traceparent: `00-${TRACE}-${SENDER}-00`, tracestate: 'a=b' };
  for (const headers of [{}, unsampled, traced]) {
    for (let i = 0; i < 2; i++) assert.equal((await fetch(`${urls.rest}/users/1`, { headers })).status, 200);
  }
  for (const headers of [{}, unsampled]) {
    await service.post('webhook', '/webhook', '{"event":"plain"}', headers);
  }
  const forwarded = await waitFor('the forwards', () => {
    const got = service.receiver.at('/in');
    return got.length === 2 && got.map(({ headers }) => String(headers.traceparent ?? 'none'));
  });
  assert.deepEqual(forwarded.map((parent) => parent.replace(/-[\da-f]{16}-/, '-span-')).toSorted(), [
    `00-${TRACE}-span-00`,
    'none',
  ]);
  const spans = await service.stop();
  assert.deepEqual(spans.map(({ name }) => name).toSorted(), [
    'GET /users/:id',
    'GET /users/:id',
    'SELECT users',
    'SELECT users',
  ]);
});
