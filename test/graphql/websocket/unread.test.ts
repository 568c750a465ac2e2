import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import fastify from 'fastify';
import { BodyBudget } from '../../../packages/transport/body/body-budget.ts';
import { graphql } from '../../../src/graphql/graphql.ts';
import { usersSchema } from '../../../src/graphql/users-schema.ts';
import { LocalUserFeed } from '../../../src/relations/events.ts';
import { MemoryUserStore } from '../../../src/relations/user-stores.ts';
import { waitFor } from '../../support/wait-for.ts';
import { connectSocket, openSocket } from '../support/socket-client.ts';

const MAX = 256 * 1024;

/** The plugin in an application whose bodies and messages have a budget that is looked at. */
async function start() {
  const budget = new BodyBudget({ max: MAX });
  const feed = new LocalUserFeed();
  const app = fastify();
  budget.attach(app);
  app.register(graphql, { schema: usersSchema(new MemoryUserStore(feed, 100), feed) });
  const origin = await app.listen({ host: '127.0.0.1', port: 0 });
  const clients: Socket[] = [];
  return {
    budget,
    url: `${origin}/graphql`,
    /** A WebSocket whose frames are written by hand. */
    async raw(): Promise<Socket> {
      const socket = connect(Number(new URL(origin).port), '127.0.0.1');
      socket.on('error', () => {});
      clients.push(socket);
      const fields = [
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
        'Sec-WebSocket-Protocol: graphql-transport-ws',
      ];
      socket.write(`GET /graphql HTTP/1.1\r\nHost: x\r\n${fields.join('\r\n')}\r\n\r\n`);
      await once(socket, 'data');
      socket.resume();
      return socket;
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.destroy();
      app.server.closeAllConnections();
      await app.close();
    },
  };
}

/** A frame whose mask is 0. */
function frame(first: number, payload: string): Buffer {
  const head = Buffer.alloc(payload.length < 126 ? 6 : 8);
  head[0] = first;
  head[1] = 0x80 | Math.min(payload.length, 126);
  if (payload.length >= 126) head.writeUInt16BE(payload.length, 2);
  return Buffer.concat([head, Buffer.from(payload)]);
}

const PING = JSON.stringify({ type: 'ping' });

test('messages that have not ended count with what they keep in memory, until they end', async () => {
  await using app = await start();
  const client = await app.raw();
  client.write(frame(0x01, ' '.repeat(20_000)));
  await waitFor('the beginning to count', () => app.budget.held >= 20_000);
  client.write(frame(0x00, ' '.repeat(20_000)));
  await waitFor('more to count', () => app.budget.held >= 40_000);
  assert.ok(app.budget.held < 60_000);
  // A message by itself between them, whose memory they share.
  client.write(frame(0x89, 'x'));
  client.write(frame(0x80, PING));
  await waitFor('nothing to count', () => app.budget.held === 0);
});

test('a client that keeps sending never counts for more than it has not ended', async () => {
  await using app = await start();
  const client = await app.raw();
  const text = PING + ' '.repeat(8_000);
  const messages = Buffer.concat(Array.from({ length: 400 }, () => frame(0x81, text)));
  // Cut so that nearly every piece ends one message and begins the next one.
  for (let at = 0; at < messages.length; at += 7_000) {
    if (!client.write(messages.subarray(at, at + 7_000))) await once(client, 'drain');
  }
  await waitFor('all to be read', () => app.budget.held === 0);
  assert.equal(client.closed, false);
});

test('over all connections they are bounded: the slow ones make room, and others are served', async () => {
  await using app = await start();
  const slow = await Promise.all(Array.from({ length: 5 }, () => app.raw()));
  const good = await connectSocket(app.url);
  for (const each of slow) each.write(frame(0x01, ' '.repeat(48_000)));
  await waitFor('all to count', () => app.budget.held >= 5 * 48_000 || slow.some(({ closed }) => closed));
  // It has no room at first, and is closed with 1013 then.
  await waitFor('a message to find room', async () => {
    const client = await openSocket(app.url);
    client.socket.send('{"type":"connection_init"'.padEnd(60_000), { fin: false });
    client.socket.send('}', { fin: true });
    let closed: Awaited<typeof client.closed> | undefined;
    void client.closed.then((how) => {
      closed = how;
    });
    const outcome = await waitFor('an answer or the end', () => client.messages[0]?.type ?? closed);
    client.socket.terminate();
    if (typeof outcome === 'string') return outcome === 'connection_ack';
    assert.deepEqual(outcome, { code: 1013, reason: 'BUSY' });
    return false;
  });
  await waitFor('a slow one to be closed', () => slow.some(({ closed }) => closed));
  assert.ok(app.budget.held <= MAX);
  good.send({ type: 'ping' });
  assert.equal((await good.next()).type, 'pong');
});

test('a message has few fragments, and they are not lost', async () => {
  await using app = await start();
  const client = await connectSocket(app.url);
  const parts = (count: number) => {
    const text = JSON.stringify({ type: 'ping', payload: { a: 'x'.repeat(count) } });
    const size = Math.ceil(text.length / count);
    for (let i = 0; i < count; i++)
      client.socket.send(text.slice(i * size, (i + 1) * size), { fin: i === count - 1 });
  };
  parts(100);
  assert.equal((await client.next()).type, 'pong');
  // Few enough that they have room, however they come.
  parts(300);
  assert.equal((await client.closed).code, 1008);
});
