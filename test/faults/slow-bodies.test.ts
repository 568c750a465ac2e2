import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type PorticoProcess, startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

// Clients that send their bodies slowly, or not to their end, keep nobody else out.

const MIB = 1024 * 1024;
const SECRET = 'it-is-what-github-signs-with';

async function start(t: TestContext, env: Readonly<Record<string, string>> = {}): Promise<PorticoProcess> {
  const folder = await temporaryFolder();
  const sources = { github: { scheme: 'github', secrets: SECRET } };
  writeFileSync(join(folder.path, 'portico.config.json'), JSON.stringify({ webhook: { sources } }));
  const portico = startPortico({ cwd: folder.path, env: { INTERFACES: 'rest,webhook', ...env } });
  t.after(async () => {
    await portico[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });
  await portico.ready();
  return portico;
}

/** A request whose body does not come to its end. */
interface Dribble {
  /** Sends one more byte. */
  drip(): void;
  /** What has come; it may be lost where the connection is closed while the client sends. */
  readonly reply: string;
  readonly isClosed: boolean;
}

/** Begins a POST and sends the beginning of its body; resolves once the connection is open. */
async function dribble(
  t: TestContext,
  url: string,
  fields: Readonly<Record<string, string>>,
  beginning: string | Buffer,
): Promise<Dribble> {
  const { hostname, port, pathname } = new URL(url);
  const socket = connect(Number(port), hostname).on('error', () => {});
  t.after(() => socket.destroy());
  let reply = '';
  socket.setEncoding('latin1').on('data', (text: string) => {
    reply += text;
  });
  await once(socket, 'connect');
  const head = Object.entries({ Host: 'localhost', ...fields }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  socket.write(`POST ${pathname} HTTP/1.1\r\n${head.join('')}\r\n`);
  socket.write(beginning);
  return {
    drip: () => socket.write('x'),
    get reply() {
      return reply;
    },
    get isClosed() {
      return socket.closed;
    },
  };
}

/** Sends a whole body on a connection of its own; resolves to the status and the text of the reply, or 0 without one. */
function post(
  url: string,
  body: Buffer,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve) => {
    const sent = request(url, {
      method: 'POST',
      agent: false,
      headers: { 'content-length': body.length, ...headers },
    });
    sent.on('error', () => resolve({ status: 0, text: '' }));
    sent.on('response', async (reply) => {
      let text = '';
      for await (const piece of reply.setEncoding('utf8')) text += piece;
      resolve({ status: reply.statusCode ?? 0, text });
    });
    sent.end(body);
  });
}

const json = (bytes: number) => Buffer.from(`"${'a'.repeat(bytes - 2)}"`);
const signed = (body: Buffer) => ({
  'x-github-event': 'push',
  'x-hub-signature-256': `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`,
});
const TOO_SLOW = /^HTTP\/1\.1 408 .*\r\nx-error-code: TOO_SLOW\r\n/s;

test('seventy bodies of a megabyte, a byte at a time, and good deliveries beside them', async (t) => {
  const { urls } = await start(t);
  const url = `${urls.webhook}/webhook`;
  const slow = await Promise.all(
    Array.from({ length: 70 }, () => dribble(t, url, { 'Content-Length': `${MIB}` }, '"')),
  );
  for (let i = 0; i < 31; i++) {
    assert.equal((await post(url, json(MIB))).status, 200, `delivery ${i}`);
    for (const each of slow) each.drip();
  }
});

test('seventy bodies that stop short of their end make room for good deliveries', async (t) => {
  const { urls } = await start(t);
  const url = `${urls.webhook}/webhook`;
  const stopped = await Promise.all(
    Array.from({ length: 70 }, () =>
      dribble(t, url, { 'Content-Length': `${MIB}` }, json(MIB).subarray(0, MIB - 10)),
    ),
  );
  await waitFor('more of them than fit', () => stopped.some(({ isClosed }) => isClosed));
  // More at a time than the room that is left.
  const good = async () => {
    const replies = await Promise.all(Array.from({ length: 8 }, () => post(url, json(MIB))));
    return replies.every(({ status }) => status === 200);
  };
  await waitFor('deliveries to be taken', good);
  for (let i = 0; i < 5; i++) {
    // On a busy machine a client may need a second try, because it sends slowly itself.
    assert.ok((await good()) || (await good()));
    for (const each of stopped) if (!each.isClosed) each.drip();
  }
  assert.ok(stopped.some(({ reply }) => TOO_SLOW.test(reply)));
});

test('bodies with a signature that is made up, and one that is rightly signed', async (t) => {
  const { urls } = await start(t);
  const url = `${urls.webhook}/webhook/github`;
  const made = { ...signed(Buffer.from('something else')), 'Content-Length': `${25 * MIB}` };
  const slow = [await dribble(t, url, made, '"'), await dribble(t, url, made, '"')];
  const body = json(8 * MIB);
  for (let i = 0; i < 3; i++) {
    assert.equal((await post(url, body, signed(body))).status, 200);
    for (const each of slow) each.drip();
  }
  // All but their end: now they hold what large bodies may hold together.
  const large = json(25 * MIB).subarray(0, 24 * MIB + 1000);
  const greedy = [await dribble(t, url, made, large), await dribble(t, url, made, large)];
  await waitFor('one of them to be too much', () => greedy.some(({ isClosed }) => isClosed));
  const good = async () => (await post(url, body, signed(body))).status === 200;
  await waitFor('the other one to make room', async () => {
    return (await good()) && greedy.every(({ isClosed }) => isClosed);
  });
  assert.ok(await good());
});

test('eight imports of a byte at a time', async (t) => {
  const { urls } = await start(t);
  const url = `${urls.rest}/users`;
  const type = 'application/x-ndjson';
  const fields = { 'Content-Type': type, 'Content-Length': '1000000' };
  const line = (name: string) => `{"name":"${name}","email":"${name}@example.com"}\n`;
  const slow = await Promise.all(
    Array.from({ length: 8 }, (_, i) => dribble(t, url, fields, i < 4 ? line(`slow${i}`) : '{')),
  );
  const begun = slow.slice(0, 4);
  await waitFor('the replies to begin', () => begun.every(({ reply }) => reply.includes('{"line":1,"id":')));
  for (let i = 0; i < 10; i++) {
    await waitFor('an import to be taken', async () => {
      const { status, text } = await post(url, Buffer.from(line(`good${i}`)), { 'content-type': type });
      return status === 200 && text.endsWith('{"created":1,"refused":0}\n');
    });
    for (const each of slow) if (!each.isClosed) each.drip();
  }
  const refused = () => slow.filter(({ reply }) => reply.includes('TOO_SLOW'));
  await waitFor('one to be told', () => refused().length > 0);
  for (const each of refused()) {
    if (begun.includes(each)) assert.match(each.reply, /\{"code":"TOO_SLOW",.*"stopped":true\}/);
    else assert.match(each.reply, TOO_SLOW);
  }
});

test('a client that holds all of the room makes some for others, as the trusted proxy names them', async (t) => {
  const { urls } = await start(t, {
    TRUST_PROXY: 'loopback',
    WEBHOOK_MAX_BYTES_IN_FLIGHT: String(8 * MIB),
  });
  const url = `${urls.webhook}/webhook`;
  const fields = { 'Content-Length': `${MIB}`, 'X-Forwarded-For': '192.0.2.1' };
  const greedy = await Promise.all(
    Array.from({ length: 12 }, () => dribble(t, url, fields, json(MIB).subarray(0, MIB - 10))),
  );
  await waitFor('it to hold all of it', () => greedy.some(({ isClosed }) => isClosed));
  for (let i = 0; i < 20; i++) {
    const { status } = await post(url, json(MIB), { 'x-forwarded-for': `198.51.100.${i}` });
    assert.equal(status, 200);
  }
});
