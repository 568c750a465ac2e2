import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import fastify from 'fastify';
import { waitFor } from '../../test/support/wait-for.ts';
import { EventStreams } from './event-stream.ts';
import { UnreadEvents } from './unread-events.ts';

test('when too much waits for all, readers that are behind are cut, and nothing of them stays counted', async (t) => {
  const unread = new UnreadEvents(2_000_000);
  const streams = new EventStreams(unread);
  const app = fastify({ forceCloseConnections: true });
  t.after(() => app.close());
  let highest = 0;
  let cut = 0;
  app.get('/', (_request, reply) => {
    reply.raw.once('close', () => cut++);
    void streams.send(reply, events(), (result) => JSON.stringify(result));
  });
  /** Each event is far less than a reader may be behind by, so only all of them together are too many. */
  async function* events() {
    for (;;) {
      yield { data: { text: 'x'.repeat(20_000) } };
      highest = Math.max(highest, unread.bytes);
      await delay(2);
    }
  }
  await app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = app.server.address() as AddressInfo;
  const sockets = Array.from({ length: 60 }, () => connect(port, '127.0.0.1').pause());
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  for (const socket of sockets) {
    socket.on('error', () => {});
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  }
  await waitFor('readers to be cut', () => cut > 0);
  assert.ok(highest < 3_500_000, `${highest} bytes`);
  for (const socket of sockets) socket.destroy();
  await waitFor('all to be forgotten', () => unread.bytes === 0);
});
