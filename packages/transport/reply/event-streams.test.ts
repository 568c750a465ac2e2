import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import fastify, { type FastifyInstance } from 'fastify';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { RequestContext } from '../endpoint.ts';
import { addEndpoint } from '../fastify.ts';
import { ReplyBudget } from './reply-budget.ts';
import { EventStream, eventReply, eventStreamsOf, limitUnread } from './reply-streams.ts';

/** Answers GET / with a stream. */
function answer(
  app: FastifyInstance,
  stream: (onClose: (listener: () => void) => void) => EventStream,
): void {
  const handle = (ctx: RequestContext) => eventReply(stream((listener) => ctx.onClose(listener)));
  addEndpoint(app, 'GET', '/', { bodyLimit: 0, handle }, { fast: false });
}

test('when too much waits for all, readers that are behind are cut, and nothing of them stays counted', async (t) => {
  const unread = new ReplyBudget(2_000_000);
  const app = fastify({ forceCloseConnections: true });
  limitUnread(app, unread);
  t.after(() => app.close());
  let highest = 0;
  let cut = 0;
  answer(app, (onClose) => {
    onClose(() => cut++);
    return new EventStream(events(), { text: (result) => `data: ${JSON.stringify(result)}\n\n` });
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
  assert.ok(highest <= 2_000_000, `${highest} bytes`);
  for (const socket of sockets) socket.destroy();
  await waitFor('all to be forgotten', () => unread.bytes === 0);
});

test('a source that waits is not asked while its reader takes nothing, and the reader gets all of it', async (t) => {
  const unread = new ReplyBudget();
  const app = fastify({ forceCloseConnections: true });
  limitUnread(app, unread);
  t.after(() => app.close());
  const total = 400;
  let asked = 0;
  let returned = false;
  const source = {
    next: () => Promise.resolve(asked < total ? { value: asked++ } : { value: 0, done: true }),
    return: () => {
      returned = true;
      return Promise.resolve({ value: 0, done: true });
    },
  } as AsyncIterator<number>;
  const format = {
    waits: true,
    text: (nth: number) => `id: ${nth}\ndata: ${'x'.repeat(100_000)}\n\n`,
    end: () => 'retry: 9\n\n',
  };
  answer(app, () => new EventStream({ [Symbol.asyncIterator]: () => source }, format));
  await app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = app.server.address() as AddressInfo;
  const socket = connect(port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
  await once(socket, 'readable');
  let before = -1;
  await waitFor('the source to be left alone', async () => {
    if (asked === before && unread.bytes > 0) return true;
    before = asked;
    await delay(100);
    return false;
  });
  assert.ok(asked < total, `${asked} events`);
  assert.ok(unread.bytes < 500_000, `${unread.bytes} bytes`);
  let text = '';
  for await (const piece of socket) text += String(piece);
  assert.equal(text.match(/^id: /gm)?.length, total);
  assert.match(text, /retry: 9\n/);
  assert.equal(returned, true);
  assert.equal(unread.bytes, 0);
});

test('however many readers take nothing of sources that wait, what waits for them stays within the bound', async (t) => {
  const [max, event] = [1_000_000, 50_000];
  const unread = new ReplyBudget(max);
  const app = fastify({ forceCloseConnections: true });
  limitUnread(app, unread);
  t.after(() => app.close());
  const sockets = new Set<Socket>();
  app.server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  let highest = 0;
  async function* events() {
    for (;;) {
      yield 'x'.repeat(event);
      const open = [...sockets].filter(({ destroyed }) => !destroyed);
      highest = Math.max(
        highest,
        open.reduce((sum, { writableLength }) => sum + writableLength, 0),
      );
    }
  }
  answer(app, () => new EventStream(events(), { waits: true, text: (data) => `data: ${data}\n\n` }));
  const streams = eventStreamsOf(app);
  await app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = app.server.address() as AddressInfo;
  const readers = Array.from({ length: 40 }, () => connect(port, '127.0.0.1').pause());
  for (const reader of readers) {
    reader.on('error', () => {});
    await once(reader, 'connect');
    reader.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  }
  await waitFor(
    'all streams to begin',
    () => sockets.size === readers.length && streams.size === readers.length,
  );
  await waitFor('a reader to make room', () => sockets.size < readers.length);
  // A head and the frame of each event.
  assert.ok(highest < max + readers.length * 400, `${highest} bytes`);
  for (const reader of readers) reader.destroy();
  await waitFor('nothing to stay counted', () => unread.bytes === 0);
});
