import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { test } from 'node:test';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { waitFor } from '../../../test/support/wait-for.ts';
import { BodyBudget } from './body-budget.ts';
import { requestMessage } from './request-body.ts';

/** A server whose requests are handed out one by one, and a connection to it. */
async function open(max = 1024 * 1024) {
  const budget = new BodyBudget({ max });
  const server = createServer({ IncomingMessage: requestMessage(budget, (address = '') => address) });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => {});
  return {
    budget,
    socket,
    async begin(path = '/'): Promise<IncomingMessage> {
      const arrived = once(server, 'request');
      socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`);
      const [request, response] = await arrived;
      response.on('close', () => {});
      return request as IncomingMessage;
    },
    async [Symbol.asyncDispose]() {
      socket.destroy();
      server.closeAllConnections();
      server.close();
    },
  };
}

const chunk = (bytes: Buffer | string) =>
  Buffer.concat([
    Buffer.from(`${bytes.length.toString(16)}\r\n`),
    Buffer.from(bytes as Buffer),
    Buffer.from('\r\n'),
  ]);
const END = '0\r\n\r\n';

/** Resolves when a request is over, broken off or not. */
function closeOf(request: IncomingMessage): Promise<void> {
  return new Promise((resolve) => request.on('error', () => {}).once('close', () => resolve()));
}

/** How a reader takes a body. */
const READERS: Readonly<Record<string, (request: IncomingMessage) => Promise<Buffer>>> = {
  async flowing(request) {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    await once(request, 'end');
    return Buffer.concat(pieces);
  },
  async 'pausing after each piece'(request) {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => {
      pieces.push(piece);
      request.pause();
      setImmediate(() => request.resume());
    });
    await once(request, 'end');
    return Buffer.concat(pieces);
  },
  async iterating(request) {
    const pieces: Buffer[] = [];
    for await (const piece of request) {
      pieces.push(piece as Buffer);
      await turn();
    }
    return Buffer.concat(pieces);
  },
  async 'reading some bytes at a time'(request) {
    const pieces: Buffer[] = [];
    request.on('readable', () => {
      for (
        let piece = request.read(3) ?? request.read();
        piece !== null;
        piece = request.read(3) ?? request.read()
      )
        pieces.push(piece as Buffer);
    });
    await once(request, 'end');
    return Buffer.concat(pieces);
  },
};

for (const [how, read] of Object.entries(READERS)) {
  test(`a reader gets the bytes of a body in their order: ${how}`, async () => {
    const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(pieces, fc.nat(3), fc.nat(50), async (bodies, late, apart) => {
        await using server = await open();
        const request = await server.begin();
        const wire = Buffer.concat([...bodies.map((bytes) => chunk(Buffer.from(bytes))), Buffer.from(END)]);
        const cut = Math.min(wire.length, apart * 20);
        server.socket.write(wire.subarray(0, cut));
        for (let i = 0; i < late; i++) await turn();
        const reading = read(request);
        await turn();
        server.socket.write(wire.subarray(cut));
        assert.deepEqual(await reading, Buffer.concat(bodies));
        assert.equal(server.budget.held, 0);
      }),
      { numRuns: 40 },
    );
  });

  test(`so it does where thousands of pieces come at once: ${how}`, async () => {
    await using server = await open();
    const request = await server.begin();
    const reading = read(request);
    const bytes = Buffer.from(Array.from({ length: 5_000 }, (_, i) => i % 251));
    server.socket.write(
      Buffer.concat([...Array.from(bytes, (byte) => chunk(Buffer.of(byte))), Buffer.from(END)]),
    );
    assert.deepEqual(await reading, bytes);
    assert.equal(server.budget.held, 0);
  });
}

test('what nobody reads is one buffer, counted until it is read', async () => {
  await using server = await open();
  const request = await server.begin();
  server.socket.write(Buffer.concat(Array.from({ length: 3_000 }, () => chunk('x'))));
  await waitFor('all to be there', () => server.budget.held >= 3_000);
  assert.ok(server.budget.held < 8_192);
  const [first] = await once(request, 'data');
  assert.equal((first as Buffer).length, 3_000);
  await waitFor('nothing to be held', () => server.budget.held === 0);
});

test('a reader that pauses has one buffer before it too, and counts no more than that', async () => {
  await using server = await open();
  const request = await server.begin();
  const read = request.iterator({ destroyOnReturn: false });
  server.socket.write(chunk('first'));
  assert.equal(String((await read.next()).value), 'first');
  // Each piece comes by itself, and Node asks for the next one ahead of the reader.
  server.socket.setNoDelay(true);
  for (let i = 0; i < 400; i++) {
    server.socket.write(chunk('x'));
    await turn();
  }
  await waitFor('all to be there', async () => request.readableLength + server.budget.held >= 400);
  assert.ok(request.readableLength < 10, `${request.readableLength} bytes in pieces`);
  let rest = 0;
  while (rest < 400) rest += (await read.next()).value.length;
  assert.equal(rest, 400);
  assert.equal(server.budget.held, 0);
});

test('a body that is complete counts as long as nobody reads it', async () => {
  await using server = await open();
  const request = await server.begin();
  server.socket.write(chunk('x'.repeat(1_000)));
  server.socket.write(END);
  await waitFor('it to be complete', () => request.complete);
  assert.equal(server.budget.held, 1_000);
  request.resume();
  await once(request, 'end');
  assert.equal(server.budget.held, 0);
});

test('a connection is read no further than a little ahead of its reader', async () => {
  await using server = await open();
  await server.begin();
  let sent = 0;
  const piece = chunk('x'.repeat(1_000));
  for (let i = 0; i < 8_000 && server.socket.writableLength < 1024 * 1024; i++) {
    server.socket.write(piece);
    sent += piece.length;
    await turn();
  }
  assert.ok(sent > 1024 * 1024);
  assert.ok(server.budget.held < 256 * 1024, `${server.budget.held}`);
});

test('the connection of a body for which there is no room is closed', async () => {
  await using server = await open(1_000);
  const request = await server.begin();
  const closed = closeOf(request);
  server.socket.write(chunk('x'.repeat(1_001)));
  await closed;
  assert.equal(server.budget.held, 0);
});

test('a client that leaves holds nothing', async () => {
  await using server = await open();
  const request = await server.begin();
  const closed = closeOf(request);
  server.socket.write(chunk('x'.repeat(500)));
  await waitFor('it to be held', () => server.budget.held === 500);
  server.socket.destroy();
  await closed;
  assert.equal(server.budget.held, 0);
});

test('a body without a reader makes room for others once it does not come any more', async () => {
  await using server = await open(1_000);
  const request = await server.begin();
  const closed = closeOf(request);
  server.socket.write(chunk('x'.repeat(900)));
  await waitFor('it to be held', () => server.budget.held === 900);
  while (!server.budget.take(500, { client: '10.0.0.1', caller: undefined })) await delay(100);
  await closed;
  assert.equal(server.budget.held, 500);
});
