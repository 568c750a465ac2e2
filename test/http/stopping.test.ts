import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { warmUp } from '../support/connections.ts';
import { openFastDoor } from '../support/fast-door.ts';
import { waitFor } from '../support/wait-for.ts';

const GET = 'GET /things/a HTTP/1.1\r\nHost: x\r\n\r\n';
const POST = 'POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx';
const LARGE = 'x'.repeat(16 * 1024 * 1024);
const never = new AbortController().signal;

async function dial(url: string): Promise<Socket> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1' });
  await once(socket, 'connect');
  return socket;
}

/** Everything that a connection brings until it is closed. */
async function textOf(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (piece: Buffer) => {
    text += piece.toString('latin1');
  });
  await new Promise((resolve) => socket.once('close', resolve));
  return text;
}

for (const fastPath of [true, false]) {
  const by = fastPath ? 'by the fast path' : 'by Fastify';

  test(`a stop waits for a reply that its client reads late, and meanwhile closes the idle connections, ${by}`, async () => {
    await using door = await openFastDoor({ fastPath, echo: () => LARGE });
    const reader = await dial(door.url);
    await warmUp(reader);
    const idle = await dial(door.url);
    await warmUp(idle);
    reader.pause();
    reader.write(POST);
    await delay(100);
    const closing = door.listener.close(never);
    await once(idle.resume(), 'close');
    assert.equal(reader.destroyed, false);
    const read = textOf(reader);
    reader.resume();
    const text = await read;
    assert.ok(text.endsWith(`\r\n\r\n${LARGE}`));
    await closing;
  });

  test(`a stop answers the first request of a connection that was accepted before, ${by}`, async () => {
    await using door = await openFastDoor({ fastPath });
    const early = await dial(door.url);
    await waitFor('the connection', async () => (await connectionsOf(door)) === 2);
    const closing = door.listener.close(never);
    await delay(150);
    const text = textOf(early);
    early.write(GET);
    assert.match(await text, /^HTTP\/1\.1 200 OK\r\nconnection: close\r\n[\s\S]+: a$/);
    await closing;
  });

  test(`a client that closes its half behind a request gets the reply, ${by}`, async () => {
    const answer = Promise.withResolvers<string>();
    let asked = 0;
    await using door = await openFastDoor({
      fastPath,
      echo() {
        asked++;
        return answer.promise;
      },
    });
    const socket = connect({ port: Number(new URL(door.url).port), host: '127.0.0.1', allowHalfOpen: true });
    await warmUp(socket);
    const text = textOf(socket);
    socket.end(POST);
    await waitFor('the request', () => asked === 1);
    await delay(50);
    answer.resolve('stored');
    assert.match(await text, /^HTTP\/1\.1 200 OK\r\n[\s\S]+stored$/);
  });

  test(`a request with an Upgrade that is ignored is the last of its connection, ${by}`, async () => {
    await using door = await openFastDoor({ fastPath });
    const socket = await dial(door.url);
    await warmUp(socket);
    const text = textOf(socket);
    socket.write(GET.replace('\r\n\r\n', '\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n') + GET + GET);
    const replies = (await text).split('HTTP/1.1 ').slice(1);
    assert.equal(replies.length, 1);
    assert.match(replies[0] ?? '', /^200 OK\r\nconnection: close\r\n/);
  });

  test(`requests before a CONNECT are all answered, and it is refused, ${by}`, async () => {
    await using door = await openFastDoor({ fastPath, echo: () => delay(20, 'late') });
    const socket = await dial(door.url);
    await warmUp(socket);
    const text = textOf(socket);
    socket.write(`${POST}${POST}${GET}CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\nbytes`);
    const replies = (await text).split('HTTP/1.1 ').slice(1);
    assert.deepEqual(
      replies.map((reply) => [reply.slice(0, 3), reply.split('\r\n\r\n')[1]]),
      [
        ['200', 'late'],
        ['200', 'late'],
        ['200', 'fastify: a'],
        ['405', 'NO_ROUTE'],
      ],
    );
  });
}

function connectionsOf({ app }: Awaited<ReturnType<typeof openFastDoor>>): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  app.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
  return promise;
}
