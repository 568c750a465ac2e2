import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Readable } from 'node:stream';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { addEndpoint, createListener, type Reply, ReplyBudget, readRawBodies } from '@portico/transport';
import { PIECE_BYTES, TURN_PIECES } from '../../packages/transport/reply/reply-streams.ts';
import { openLog } from '../../src/telemetry/log.ts';
import { warmUp } from '../support/connections.ts';
import { captureLog } from '../support/log-capture.ts';
import { residentMegabytes } from '../support/memory.ts';
import { startPortico } from '../support/portico-process.ts';
import { inFull } from '../support/proof-settings.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const TRANSPORTS = { 'the fast path': true, Fastify: false } as const;

/** What a route of Fastify's own sends, four times. */
const OWN = Array.from({ length: 200_000 }, (_, i) => `line ${i}\n`).join('');

/** A door whose GET /reply answers with what `body` makes, and the sockets of its clients. */
async function openDoor(fastPath: boolean, budget: ReplyBudget, body: () => Reply['body']) {
  const listener = createListener({
    door: 'test',
    host: '127.0.0.1',
    port: 0,
    portHint: '',
    log: await openLog({ level: 'info', stream: captureLog().stream }),
    errors: { contentType: 'text/plain', body: ({ code }) => code },
    fastPath,
    replyBudget: budget,
  });
  listener.app.register((room, _options, done) => {
    readRawBodies(room);
    const handle = () => ({ status: 200, type: 'text/plain', body: body() });
    addEndpoint(room, 'GET', '/reply', { bodyLimit: 0, handle });
    done();
  });
  listener.app.get('/own', (_request, reply) =>
    reply.send(Readable.from([OWN, OWN, OWN, OWN], { objectMode: false })),
  );
  const sockets = new Set<Socket>();
  listener.app.server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return { listener, sockets, port: Number(new URL(await listener.listen()).port) };
}

const REQUEST = 'GET /reply HTTP/1.1\r\nHost: x\r\n\r\n';

/** A client whose next request can take the fast path. */
async function connected(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  await once(socket, 'connect');
  await warmUp(socket);
  return socket;
}

for (const [name, fastPath] of Object.entries(TRANSPORTS)) {
  describe(`replies by ${name}`, () => {
    test('what waits for clients that do not read stays within the bound, and one that reads is served', async (t) => {
      const max = 8 * PIECE_BYTES;
      const budget = new ReplyBudget(max);
      async function* endless() {
        for (;;) yield Buffer.alloc(PIECE_BYTES, 'x');
      }
      const { listener, sockets, port } = await openDoor(fastPath, budget, endless);
      await using _door = listener;
      let highest = 0;
      const look = setInterval(() => {
        const open = [...sockets].filter(({ destroyed }) => !destroyed);
        highest = Math.max(
          highest,
          open.reduce((sum, { writableLength }) => sum + writableLength, 0),
        );
      }, 1);
      t.after(() => clearInterval(look));
      const clients = await Promise.all(Array.from({ length: 40 }, () => connected(port)));
      for (const client of clients) client.pause().write(REQUEST);
      // As many as fit are blocked, and make room after a second; the others wait for room.
      await waitFor('all room for pieces to be taken', () => budget.bytes === 0.75 * max);
      const reader = await connected(port);
      let read = 0;
      reader.on('data', (bytes: Buffer) => {
        read += bytes.length;
      });
      reader.write(REQUEST);
      await waitFor('the reader to be served', () => read > 50 * PIECE_BYTES);
      // A head, and the frame of each piece.
      assert.ok(highest < max + 40 * 400, `${highest} bytes`);
      for (const client of [...clients, reader]) client.destroy();
      await waitFor('nothing to stay counted', () => budget.bytes === 0);
    });

    test('small replies that the system does not take are counted too', async () => {
      const budget = new ReplyBudget();
      const { listener, sockets, port } = await openDoor(fastPath, budget, () => 'x'.repeat(10_000));
      await using _door = listener;
      const client = await connected(port);
      client.pause();
      const [socket] = sockets;
      assert.ok(socket);
      for (let asked = socket.bytesRead; budget.bytes === 0; ) {
        client.write(REQUEST);
        asked += REQUEST.length;
        await waitFor('the request to arrive', () => socket.bytesRead === asked);
      }
      assert.ok(socket.writableLength > 0);
      client.destroy();
      await waitFor('nothing to stay counted', () => budget.bytes === 0);
    });

    test('replies that could all go on are sent in turns', async () => {
      const [clients, pieces] = [12, 20 * TURN_PIECES];
      const made: number[] = [];
      async function* small() {
        const nth = made.push(0) - 1;
        for (let piece = 0; piece < pieces; piece++) {
          made[nth] = piece + 1;
          const running = made.filter((count) => count < pieces);
          behind = Math.max(behind, Math.max(...made) - Math.min(...running, pieces));
          yield 'x'.repeat(100);
        }
      }
      let behind = 0;
      let begun = 0;
      const begins: (() => void)[] = [];
      const all = Promise.withResolvers<void>();
      // All begin together, so that whoever is behind was passed over.
      async function* together() {
        const begin = new Promise<void>((resolve) => begins.push(resolve));
        if (++begun === clients) all.resolve();
        await begin;
        yield* small();
      }
      const { listener, port } = await openDoor(fastPath, new ReplyBudget(), together);
      await using _door = listener;
      const sockets = await Promise.all(Array.from({ length: clients }, () => connected(port)));
      const replies = sockets.map(async (socket) => {
        let text = '';
        socket.on('data', (bytes: Buffer) => {
          text += bytes;
        });
        socket.write(REQUEST);
        await waitFor('the reply', () => text.endsWith('0\r\n\r\n'));
        socket.destroy();
      });
      await all.promise;
      for (const begin of begins) begin();
      await Promise.all(replies);
      assert.ok(behind <= 2 * TURN_PIECES, `one reply was ${behind} pieces behind another`);
    });
  });
}

test("a stream of a route of Fastify's own is counted too, and comes as it is", async () => {
  const budget = new ReplyBudget();
  const { listener, port } = await openDoor(true, budget, () => '');
  await using _door = listener;
  assert.equal(await (await fetch(`http://127.0.0.1:${port}/own`)).text(), OWN.repeat(4));
  const client = await connected(port);
  client.pause().write('GET /own HTTP/1.1\r\nHost: x\r\n\r\n');
  await waitFor('a piece to wait', () => budget.bytes > 0);
  client.destroy();
  await waitFor('nothing to stay counted', () => budget.bytes === 0);
});

const READERS = inFull ? 300 : 150;
/** Four megabytes may wait; the rest is the garbage of what was made, and each connection. Unbounded it was 480 MB for 300. */
const MAX_MEMORY = 120;

for (const [name, fastPath] of Object.entries(TRANSPORTS)) {
  test(`${READERS} clients that read nothing of a list or an export hold bounded memory, by ${name}`, async (t) => {
    await using folder = await temporaryFolder();
    const start = () =>
      startPortico({
        cwd: folder.path,
        env: {
          INTERFACES: 'rest',
          HTTP_FAST_PATH: String(fastPath),
          HTTP_MAX_UNREAD_BYTES: String(4 * 1024 * 1024),
          // The C library would keep what is freed, and the memory of the process would tell of the past.
          MALLOC_MMAP_THRESHOLD_: '131072',
          MALLOC_TRIM_THRESHOLD_: '131072',
        },
      });
    {
      await using first = start();
      await first.ready();
    }
    {
      using db = new DatabaseSync(join(folder.path, 'portico.db'));
      // As JSON each has 1.6 KB.
      db.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
        INSERT INTO users (name, email) SELECT replace(printf('%.*c', 260, 'x'), 'x', char(1)), 'e' || i || '@x.org' FROM n`);
    }
    await using portico = start();
    await portico.ready();
    const pid = portico.child.pid ?? 0;
    const url = portico.urls.rest ?? '';
    const types = ['application/json', 'text/csv'];
    for (const accept of types) await (await fetch(`${url}/users`, { headers: { accept } })).text();
    for (const accept of types) {
      const before = residentMegabytes(pid);
      let most = 0;
      const clients: Socket[] = [];
      for (let i = 0; i < READERS; i++) {
        const client = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {});
        await once(client, 'connect');
        client.pause().write(`GET /users HTTP/1.1\r\nHost: x\r\nAccept: ${accept}\r\n\r\n`);
        clients.push(client);
        most = Math.max(most, residentMegabytes(pid) - before);
      }
      // The others are answered meanwhile.
      for (let i = 0; i < 20; i++) {
        assert.equal((await fetch(`${url}/users/${1 + i}`)).status, 200);
        await delay(50);
        most = Math.max(most, residentMegabytes(pid) - before);
      }
      for (const client of clients) client.destroy();
      t.diagnostic(`${accept}: ${most.toFixed(0)} MB`);
      assert.ok(most < MAX_MEMORY, `${accept}: ${most} MB`);
    }
  });
}
