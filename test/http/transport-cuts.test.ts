import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Door } from '../../src/config/options/options.ts';
import { buffersInUse } from '../support/collect-garbage.ts';
import { keepConnection, warmUp } from '../support/connections.ts';
import { rounds } from '../support/proof-settings.ts';
import type { TestService } from '../support/service.ts';
import { startTransportTwins } from '../support/transport-twins.ts';
import { waitFor } from '../support/wait-for.ts';

function post(door: Door, body: string): string {
  return `POST /${door} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

const GET = 'GET /users/1 HTTP/1.1\r\nHost: x\r\n\r\n';
const good: Readonly<Partial<Record<Door, string>>> = {
  graphql: '{"query":"{hello}"}',
  webhook: '{"event":"nobody.knows"}',
};

/**
 * A connection that has sent a part of a request, or a whole one and has its reply; `more` sends the rest and resolves to
 * all that came back.
 */
async function begin(service: TestService, door: Door, start: string, isWhole: boolean) {
  const app = service.current.doors[door];
  assert.ok(app);
  const socket = connect(Number(new URL(service.urls[door] ?? '').port), '127.0.0.1');
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.on('error', () => {});
  await warmUp(socket);
  let text = '';
  socket.on('data', (piece: Buffer) => {
    text += piece.toString('latin1');
  });
  const asked = new Promise((resolve) => app.server.once('request', resolve));
  socket.write(start);
  if (isWhole) await waitFor('the reply', () => text !== '');
  else await asked;
  return {
    async more(end: string) {
      socket.write(end);
      await closed;
      return text
        .replace(/(?<=x-(?:request|delivery)-id: )\S+/g, 'ID')
        .replace(/(?<=Date: )[^\r]+/g, 'DATE')
        .replace(/(?<=etag: )[^\r]+/g, 'TAG')
        .replace(/last-modified: [^\r]+\r\n/g, '');
    },
  };
}

test('a stop in the middle of a body, or between two requests, ends by the fast path as it does without it', async () => {
  await using twins = await startTransportTwins({ env: { SHUTDOWN_PRE_STOP_DELAY: '2500' } });
  const cases: readonly (readonly [Door, start: string, end: string])[] = [
    ...(['graphql', 'webhook'] as const).flatMap((door) => {
      const whole = post(door, good[door] ?? '');
      const broken = post(door, '{"query":"{hello}"');
      return [whole, broken].map((text) => [door, text.slice(0, -5), text.slice(-5)] as const);
    }),
    ...(['graphql', 'webhook'] as const).map((door) => {
      const whole = post(door, good[door] ?? '');
      return [door, whole, whole] as const;
    }),
    ['rest', GET, GET],
  ];
  const begun = [];
  for (const [door, start, end] of cases) {
    const [fast, fastify] = await Promise.all([
      begin(twins.fast, door, start, start === end),
      begin(twins.fastify, door, start, start === end),
    ]);
    begun.push({ fast, fastify, end });
  }
  const stops = [twins.fast, twins.fastify].map(({ current }) => current.stop());
  for (const { fast, fastify, end } of begun) {
    const [byFast, byFastify] = await Promise.all([fast.more(end), fastify.more(end)]);
    assert.equal(byFast, byFastify);
    assert.match(byFast, /\r\nconnection: close\r\n/);
  }
  await Promise.all(stops);
});

test('a close of the instance itself asks clients to go elsewhere', async () => {
  await using twins = await startTransportTwins();
  const replies = [];
  for (const service of [twins.fast, twins.fastify]) {
    const { doors } = service.current;
    const text = post('graphql', good.graphql ?? '');
    // A request in hand keeps its connection from being closed as an idle one.
    const client = await begin(service, 'graphql', text.slice(0, -1), false);
    const closing = doors.graphql?.close();
    replies.push(await client.more(`}${text}`));
    await closing;
  }
  assert.equal(replies[0], replies[1]);
  assert.match(replies[0] ?? '', /\r\nconnection: close\r\n/i);
});

test('a client that ends in the middle of a request is answered by the fast path as it is without it', async () => {
  await using twins = await startTransportTwins();
  for (const door of ['graphql', 'webhook'] as const) {
    const whole = post(door, good[door] ?? '');
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: whole.length - 1 }), async (cut) => {
        const { fast, fastify } = await twins.ask(door, [whole.slice(0, cut)], { ending: 'end' });
        assert.equal(fast, fastify);
        assert.match(fast, /^HTTP\/1\.1 400 /);
      }),
      { numRuns: rounds(100) },
    );
  }
});

test('uploads that are cut give their bytes back', async () => {
  await using twins = await startTransportTwins({ env: { WEBHOOK_MAX_BYTES_IN_FLIGHT: '200000' } });
  const whole = post('webhook', JSON.stringify({ event: 'x', data: 'y'.repeat(150_000) }));
  const half = whole.slice(0, whole.length / 2);
  for (let i = 0; i < 100; i++) await twins.ask('webhook', [half], { ending: 'reset' });
  await waitFor('the bytes to be free', async () => {
    const { fast, fastify } = await twins.ask('webhook', [whole], { silence: 50 });
    return fast.startsWith('HTTP/1.1 200 ') && fastify.startsWith('HTTP/1.1 200 ');
  });
});

test('where exchanges are shown, those of plain requests are too', async () => {
  await using twins = await startTransportTwins({ env: { MANAGEMENT_INCLUDE: 'httpexchanges' } });
  await (await fetch(`${twins.fast.urls.rest}/users/77`)).text();
  await waitFor('the exchange', async () => {
    const reply = await fetch(`${twins.fast.urls.management}/actuator/httpexchanges`);
    return (await reply.text()).includes('/users/77');
  });
});

test('what is recorded of an exchange does not hold its body, whichever transport brought it', async () => {
  await using twins = await startTransportTwins({ env: { MANAGEMENT_INCLUDE: 'httpexchanges' } });
  const body = `${good.graphql}${' '.repeat(15_000)}`;
  const asked = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
  const recorded = 100;
  for (const { urls } of [twins.fast, twins.fastify]) {
    using connection = await keepConnection(urls.graphql ?? '');
    const slowly = twins.slowly;
    const before = buffersInUse();
    for (let i = 0; i < recorded; i++) assert.equal((await connection.ask('/graphql', asked)).status, 200);
    assert.equal(twins.slowly, slowly, 'one went by Fastify');
    await waitFor('the bodies to be gone', () => buffersInUse() - before < (recorded * body.length) / 4);
  }
});
