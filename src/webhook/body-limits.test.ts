import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import fastify from 'fastify';
import { waitFor } from '../../test/support/wait-for.ts';
import type { SourcesConfig } from '../signatures/config.ts';
import { readSources } from '../signatures/sources.ts';
import { openDatabase } from '../sql/open.ts';
import { RECEIVER_PATH, receiver } from './receiver.ts';

const SECRET = 'secret';
const MIB = 1024 * 1024;

/** A door with these sources; `most` is what all bodies may hold together. */
async function open(sources: SourcesConfig, most = 64 * MIB) {
  const problems: string[] = [];
  const settings = readSources(sources, 'sources', { env: () => undefined, file: assert.fail }, problems);
  assert.deepEqual(problems, []);
  const database = openDatabase('sqlite::memory:');
  const app = fastify();
  let stored = 0;
  await app.register(receiver, {
    prefix: RECEIVER_PATH,
    inbox: database.inbox,
    secrets: () => [],
    sources: settings,
    maxBodyBytes: MIB,
    maxBytesInFlight: most,
    work: {
      async store(facts) {
        const appended = await database.inbox.append({ ...facts, jobs: [] });
        stored++;
        return appended;
      },
    },
    refused: () => assert.fail('refused'),
  });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  return {
    port: Number(new URL(url).port),
    stored: () => stored,
    async status(path: string, size: number) {
      const body = sized(size);
      const headers = { ...signed(body), connection: 'close' };
      const reply = await fetch(url + path, { method: 'POST', body, headers }).catch(() => undefined);
      await reply?.arrayBuffer();
      return reply?.status;
    },
    async [Symbol.asyncDispose]() {
      await app.close();
      await database[Symbol.asyncDispose]();
    },
  };
}

const sized = (size: number) => Buffer.from(`"${'a'.repeat(size - 2)}"`);

const signed = (body: Uint8Array) => ({
  'x-github-event': 'push',
  'x-hub-signature-256': `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`,
});

const github = { scheme: 'github', secrets: SECRET } as const;
const other = { scheme: 'hmac', secrets: SECRET, header: 'x-hub-signature-256', prefix: 'sha256=' } as const;

test('GitHub may send as much as it does, the others as much as /webhook takes', async () => {
  await using door = await open({ github, other });
  assert.equal(await door.status('/webhook/github', 25 * MIB), 200);
  assert.equal(await door.status('/webhook/other', MIB), 200);
  assert.equal(await door.status('/webhook', MIB), 200);
  assert.equal(door.stored(), 3);
  for (const [path, size] of [
    ['/webhook/github', 25 * MIB + 1],
    ['/webhook/other', MIB + 1],
    ['/webhook', MIB + 1],
  ] as const) {
    // A client that is still sending may see the connection close before it reads the refusal.
    assert.ok([413, undefined].includes(await door.status(path, size)), path);
  }
  assert.equal(door.stored(), 3);
});

test('a limit of its own goes before both, up and down', async () => {
  await using door = await open({
    github: { ...github, maxBodyBytes: 100 },
    other: { ...other, maxBodyBytes: 2 * MIB },
  });
  assert.equal(await door.status('/webhook/github', 100), 200);
  assert.equal(await door.status('/webhook/github', 101), 413);
  assert.equal(await door.status('/webhook/other', 2 * MIB), 200);
});

test('no source takes what can never be held', async () => {
  await using door = await open({ github }, 8 * MIB);
  assert.equal(await door.status('/webhook/github', 4 * MIB), 200);
  assert.ok([413, undefined].includes(await door.status('/webhook/github', 4 * MIB + 1)));
});

/** Begins a body with a signature that is made up, and sends as much of it as is given. */
function begin(port: number, path: string, announced: number, sent: number) {
  const fields = Object.entries(signed(Buffer.from('')))
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${announced}\r\n${fields}\r\n`);
  socket.write(Buffer.alloc(sent, 'x'));
  return { socket, [Symbol.dispose]: () => socket.destroy() };
}

test('bodies that do not come leave room for others, whatever they announce', async () => {
  await using door = await open({ github }, 8 * MIB);
  using _first = begin(door.port, '/webhook/github', 4 * MIB, 100);
  using _second = begin(door.port, '/webhook/github', 4 * MIB, 100);
  for (let i = 0; i < 3; i++) {
    assert.equal(await door.status('/webhook/github', 3 * MIB), 200);
    assert.equal(await door.status('/webhook', MIB), 200);
  }
});

test('large bodies leave half of the room for small ones, and a slow one makes room for another', async () => {
  await using door = await open({ github }, 8 * MIB);
  using large = begin(door.port, '/webhook/github', 4 * MIB, 4 * MIB - 1);
  const gone = once(large.socket, 'close');
  large.socket.resume();
  for (let i = 0; i < 3; i++) {
    assert.equal(await door.status('/webhook', MIB), 200);
    assert.equal(await door.status('/webhook/github', MIB), 200);
  }
  await waitFor(
    'the large one to be slow',
    async () => (await door.status('/webhook/github', 4 * MIB)) === 200,
  );
  await gone;
});
