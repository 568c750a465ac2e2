import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { keepConnection } from '../support/connections.ts';
import { engineUrls } from '../support/databases.ts';
import { forwards, startReceiver } from '../support/receiver.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SENDER = '00f067aa0ba902b7';
const traceparent = `00-${TRACE}-${SENDER}-01`;
const tracestate = 'vendor=value';
const headers = { 'content-type': 'application/json', traceparent, tracestate };

const handlers = (at: string) =>
  forwards(at, `all: to('/in', { events: ['plain', 'isolated', 'none'] })`).replace(
    'webhook: {',
    `webhook: {
      handlers: {
        plain: (delivery, { log, trace }) => log.info({ trace }, 'handled'),
        isolated: { isolate: true, handler: (delivery, { log, trace }) => log.info({ trace }, 'handled') },
      },`,
  );

async function start(url: string, at: string, env: Readonly<Record<string, string>> = {}) {
  const service = await startTestService({
    module: handlers(at),
    env: {
      DATABASE_URL: url,
      MANAGEMENT_INCLUDE: 'deliveries',
      MANAGEMENT_ACCESS: 'unrestricted',
      LOG_REQUESTS: 'true',
      ...env,
    },
  });
  await service.listen();
  return service;
}

async function deliver(
  service: TestService,
  event: string,
  more: Readonly<Record<string, string>> = headers,
) {
  const body = JSON.stringify({ event, data: {} });
  const reply = await fetch(`${service.urls.webhook}/webhook`, { method: 'POST', headers: more, body });
  assert.equal(reply.status, 200);
  return reply.headers.get('x-delivery-id') ?? '';
}

const logged = (service: TestService, msg: string) =>
  service.log.entries.filter((entry) => entry.msg === msg);

for (const [engine, urlOf] of Object.entries(engineUrls)) {
  describe(`traces on ${engine}`, () => {
    test('a trace goes from the sender to handlers, isolated ones too, and to forwards', async () => {
      await using receiver = await startReceiver();
      await using service = await start(await urlOf(), receiver.url);
      const handled = () => logged(service, 'handled');
      for (const event of ['plain', 'isolated']) {
        const before = handled().length;
        await deliver(service, event);
        await waitFor('the handler', () => handled().length > before);
        const entry = handled().at(-1) as { trace: Record<string, string>; traceId: string; spanId: string };
        const [, id, span, flags] = entry.trace.traceparent?.split('-') ?? [];
        assert.deepEqual([id, flags, entry.trace.tracestate], [TRACE, '01', tracestate], event);
        assert.notEqual(span, SENDER, 'a span of its own');
        assert.deepEqual([entry.traceId, entry.spanId], [TRACE, span]);
      }
      await waitFor('the forwards', () => receiver.at('/in').length === 2);
      const spans = receiver.at('/in').map(({ headers: got }) => {
        const [, id, span] = String(got.traceparent).split('-');
        assert.deepEqual([id, got.tracestate], [TRACE, tracestate]);
        return span;
      });
      assert.equal(new Set([...spans, SENDER]).size, 3, 'each forward is a span of its own');
    });

    test('days later, after a restart, a replay continues it', async () => {
      await using receiver = await startReceiver();
      await using service = await start(await urlOf(), receiver.url);
      const id = await deliver(service, 'none');
      await waitFor('the forward', () => receiver.at('/in').length === 1);
      const detail = async () => {
        const reply = await fetch(`${service.urls.management}/actuator/deliveries/${id}`);
        return (await reply.json()) as { readonly status: string; readonly trace?: string };
      };
      await waitFor('its end', async () => (await detail()).status === 'done');
      assert.equal((await detail()).trace, `${traceparent} ${tracestate}`);
      await service.restart();
      await fetch(`${service.urls.management}/actuator/deliveries/${id}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"action":"replay"}',
      });
      await waitFor('the replay', () => receiver.at('/in').length === 2);
      assert.match(String(receiver.at('/in')[1]?.headers.traceparent), new RegExp(`^00-${TRACE}-`));
    });

    test('what came without a valid trace has none, and so has its log', async () => {
      await using receiver = await startReceiver();
      await using service = await start(await urlOf(), receiver.url);
      const { traceparent: _, ...without } = headers;
      await deliver(service, 'plain', without);
      await deliver(service, 'plain', { ...headers, traceparent: traceparent.toUpperCase() });
      await waitFor('the forwards', () => receiver.at('/in').length === 2);
      await waitFor('the handler', () => logged(service, 'handled').length === 2);
      for (const { headers: got } of receiver.at('/in')) {
        assert.deepEqual([got.traceparent, got.tracestate], [undefined, undefined]);
      }
      for (const entry of logged(service, 'handled')) assert.deepEqual(entry.trace, {});
      assert.deepEqual(
        service.log.entries.filter((entry) => 'traceId' in entry || 'spanId' in entry),
        [],
      );
    });
  });
}

test('a plain request with a trace stays on the fast path, and its log entries have the trace', async () => {
  await using service = await startTestService({
    env: { LOG_REQUESTS: 'true', LOG_LEVEL: 'debug', INTERFACES: 'rest,webhook', WEBHOOK_SECRET: 'sesame' },
  });
  await service.listen();
  let byNode = 0;
  for (const { server } of Object.values(service.current.doors)) server.on('request', () => byNode++);
  for (const [door, path, method] of [
    ['rest', '/users/1', 'GET'],
    ['webhook', '/webhook', 'POST'],
  ] as const) {
    using connection = await keepConnection(service.urls[door] ?? '');
    const before = byNode;
    await connection.ask(path, { method, headers, ...(method === 'POST' && { body: '{}' }) });
    assert.equal(byNode, before, door);
    await waitFor('the entry', () => logged(service, 'request').some((entry) => entry.path === path));
    const entry = logged(service, 'request').find((each) => each.path === path);
    assert.deepEqual([entry?.traceId, entry?.spanId], [TRACE, SENDER]);
  }
  const [refused] = logged(service, 'request refused').filter(({ code }) => code === 'WRONG_TOKEN');
  assert.equal(refused?.traceId, TRACE);
});
