import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { residentMegabytes } from '../support/memory.ts';
import { type PorticoProcess, startPortico } from '../support/portico-process.ts';
import { inFull } from '../support/proof-settings.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

// What clients send in tiny pieces must not take more memory than it is long. With a list of the pieces each took some
// 250 bytes: the figures are what each of these attacks took then, beside some 35 MB now. `npm test` sends 0.6 of it.

/** What a process may grow by, in megabytes: the garbage of a busy moment, and little else. */
const MAX_MEMORY = 150;
const PART = inFull ? 1 : 0.6;
const ENVIRONMENT = {
  // The C library would keep what is freed, and the memory of the process would tell of the past.
  MALLOC_MMAP_THRESHOLD_: '131072',
  MALLOC_TRIM_THRESHOLD_: '131072',
};

async function start(t: TestContext, wrapper: readonly string[] = []): Promise<PorticoProcess> {
  const folder = await temporaryFolder();
  const portico = startPortico({ cwd: folder.path, wrapper, env: ENVIRONMENT });
  t.after(async () => {
    await portico[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });
  await portico.ready();
  return portico;
}

/** Connects as often as asked, and sends a text on each connection. */
async function dial(t: TestContext, url: string, count: number, text: string): Promise<readonly Socket[]> {
  const { hostname, port } = new URL(url);
  const sockets = Array.from({ length: count }, () => connect(Number(port), hostname).on('error', () => {}));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  for (const socket of sockets) socket.write(text);
  return sockets;
}

/** Sends bytes on all sockets, until nothing moves any more; resolves to what the process has grown by at most. */
async function flood(
  { child, urls }: PorticoProcess,
  sockets: readonly Socket[],
  bytes: Buffer,
): Promise<number> {
  const pid = child.pid ?? 0;
  const before = residentMegabytes(pid);
  for (const socket of sockets) socket.write(bytes);
  const gone = () =>
    sockets.reduce((sum, { bytesWritten, writableLength }) => sum + bytesWritten - writableLength, 0);
  let most = 0;
  for (let still = 0, last = -1; still < 30; still++) {
    if (gone() !== last) still = 0;
    last = gone();
    // Others are answered meanwhile.
    assert.equal((await fetch(`${urls.rest}/users/1`)).status, 200);
    most = Math.max(most, residentMegabytes(pid) - before);
    await delay(20);
  }
  return most;
}

const chunks = (text: string) => Buffer.from([...text].map((each) => `1\r\n${each}\r\n`).join(''));
const post = (path: string, type = 'application/json') =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${type}\r\nTransfer-Encoding: chunked\r\n\r\n`;

function bounded(t: TestContext, memory: number): void {
  t.diagnostic(`${memory.toFixed(0)} MB`);
  assert.ok(memory < MAX_MEMORY, `${memory} MB`);
}

test('bodies in chunks of one byte at every door', async (t) => {
  const portico = await start(t);
  const { webhook = '', rest = '', graphql = '' } = portico.urls;
  // 520 MB.
  bounded(
    t,
    await flood(portico, await dial(t, webhook, 2, post('/webhook')), chunks('a'.repeat(1_000_000 * PART))),
  );
  // 340 MB and 450 MB.
  bounded(
    t,
    await flood(portico, await dial(t, rest, 14, post('/users')), chunks('a'.repeat(60_000 * PART))),
  );
  bounded(
    t,
    await flood(portico, await dial(t, graphql, 12, post('/graphql')), chunks('a'.repeat(95_000 * PART))),
  );
});

test('many of them do not end a process with a small heap', async (t) => {
  const portico = await start(t, ['env', 'NODE_OPTIONS=--max-old-space-size=256']);
  const sockets = await dial(t, portico.urls.webhook ?? '', 16, post('/webhook'));
  bounded(t, await flood(portico, sockets, chunks('a'.repeat(300_000))));
  assert.equal(portico.child.exitCode, null);
});

test('bodies that nobody reads', async (t) => {
  const portico = await start(t);
  const head =
    'GET /users HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';
  // 320 MB.
  const sockets = await dial(t, portico.urls.rest ?? '', 35, head);
  bounded(t, await flood(portico, sockets, chunks('a'.repeat(70_000))));
});

/** A frame of a WebSocket, whose mask is 0. */
function frame(first: number, payload: Buffer): Buffer {
  const { length } = payload;
  const head = Buffer.alloc(length < 126 ? 6 : 14);
  head[0] = first;
  if (length < 126) head[1] = 0x80 | length;
  else {
    head[1] = 0x80 | 127;
    head.writeUInt32BE(length, 6);
  }
  return Buffer.concat([head, payload]);
}

const [TEXT, TEXT_BEGIN, CONTINUATION, PONG] = [0x81, 0x01, 0x00, 0x8a];
const HANDSHAKE = [
  'GET /graphql HTTP/1.1',
  'Host: localhost',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Protocol: graphql-transport-ws',
  '\r\n',
].join('\r\n');

async function openWebSockets(t: TestContext, portico: PorticoProcess, count: number) {
  const sockets = await dial(t, portico.urls.graphql ?? '', count, HANDSHAKE);
  await Promise.all(sockets.map((socket) => once(socket, 'data')));
  for (const socket of sockets) socket.resume();
  return sockets;
}

test('WebSocket messages in frames of one byte', async (t) => {
  const portico = await start(t);
  const one = Buffer.from(' ');
  const frames = [frame(TEXT_BEGIN, one), ...Array.from({ length: 16_000 }, () => frame(CONTINUATION, one))];
  // 310 MB.
  bounded(t, await flood(portico, await openWebSockets(t, portico, 120), Buffer.concat(frames)));
});

test('WebSocket messages of few fragments, between which much else comes', async (t) => {
  const portico = await start(t);
  const one = Buffer.from(' ');
  const pongs = Buffer.concat(Array.from({ length: 500 }, () => frame(PONG, Buffer.alloc(125))));
  const fragments = Array.from({ length: 40 }, () => [frame(CONTINUATION, one), pongs]).flat();
  const frames = [frame(TEXT_BEGIN, one), ...fragments];
  // A fragment holds what was read from the connection with it: 320 MB.
  bounded(t, await flood(portico, await openWebSockets(t, portico, 200), Buffer.concat(frames)));
});

test('subscriptions whose variables are much larger than their text', async (t) => {
  const portico = await start(t);
  const sockets = await openWebSockets(t, portico, 7);
  for (const socket of sockets) socket.write(frame(TEXT, Buffer.from('{"type":"connection_init"}')));
  const message = (id: number) => {
    const query = 'subscription{userCreated{id}}';
    const text = JSON.stringify({ id: `${id}`, type: 'subscribe', payload: { query, variables: { x: [] } } });
    return frame(TEXT, Buffer.from(text.replace('[]', `[${Array(33_000).fill('[]').join()}]`)));
  };
  const messages = Buffer.concat(Array.from({ length: 55 }, (_, id) => message(id)));
  // 450 MB.
  bounded(t, await flood(portico, sockets, messages));
  const meter = `${portico.urls.management}/actuator/metrics/graphql.websocket.operations`;
  await waitFor('the subscriptions', async () => (await (await fetch(meter)).text()).includes('385'));
});
