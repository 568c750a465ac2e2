import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { warmUp } from '../support/connections.ts';
import { openFastDoor } from '../support/fast-door.ts';
import { waitFor } from '../support/wait-for.ts';

const GET = 'GET /things/a HTTP/1.1\r\nHost: x\r\n\r\n';
const post = (body: string) =>
  `POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

/** A connection behind its first request, and all that it brings from then on. */
async function dial(url: string): Promise<{ socket: Socket; text: () => string; closed: Promise<unknown> }> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true });
  await warmUp(socket);
  let text = '';
  socket.on('data', (piece: Buffer) => {
    text += piece.toString('latin1');
  });
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.once('end', () => socket.end());
  return { socket, text: () => text, closed };
}

const statuses = (text: string) => text.match(/(?<=HTTP\/1\.1 )\d{3}/g);

for (const fastPath of [true, false]) {
  const by = fastPath ? 'by the fast path' : 'by Fastify';

  test(`a request behind a reply that closes the connection is not run, ${by}`, async () => {
    const echoed: string[] = [];
    const echo = ({ body }: { readonly body: Buffer }) => {
      echoed.push(String(body));
      return '';
    };
    await using door = await openFastDoor({ fastPath, echo });
    for (const closing of [
      GET.replace('Host: x', 'Host: x\r\nHost: y'),
      post('y'.repeat(99)),
      'PLAY /things/a RTSP/1.0\r\nHost: x\r\n\r\n',
    ]) {
      const { socket, text, closed } = await dial(door.url);
      socket.write(closing + post('x'));
      await closed;
      assert.match(text(), /^HTTP\/1\.1 4\d\d [\s\S]+\r\nconnection: close\r\n/i);
      assert.equal(statuses(text())?.length, 1);
    }
    assert.deepEqual(echoed, []);
  });

  test(`a client is told to continue behind the replies to the requests before, ${by}`, async () => {
    await using door = await openFastDoor({ fastPath, echo: () => delay(50, 'late') });
    const { socket, text, closed } = await dial(door.url);
    socket.write(post('1'));
    await delay(20);
    socket.write(post('2').replace('\r\n\r\n', '\r\nExpect: 100-continue\r\n\r\n').slice(0, -1));
    await waitFor('the word to continue', () => text().includes('100 Continue'));
    socket.end('2');
    await closed;
    assert.deepEqual(statuses(text()), ['200', '100', '200']);
  });

  test(`the word to continue stands between replies, ${by}`, async () => {
    const large = Buffer.alloc(20_000, 'y');
    await using door = await openFastDoor({
      fastPath,
      echo: ({ body }) => (String(body) === '1' ? delay(20, large) : large),
    });
    const { socket, text, closed } = await dial(door.url);
    socket.end(post('1') + post('2').replace('\r\n\r\n', '\r\nExpect: 100-continue\r\n\r\n') + GET);
    await closed;
    assert.deepEqual(statuses(text()), ['200', '100', '200', '200']);
  });

  test(`an error in a body is refused behind the reply that did not wait for the body, ${by}`, async () => {
    await using door = await openFastDoor({ fastPath });
    const { socket, text, closed } = await dial(door.url);
    // Nobody has this route.
    socket.write('POST /nowhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxx');
    await closed;
    assert.deepEqual(statuses(text()), ['404', '400']);
  });

  test(`a client that closes its half behind garbage has the replies to the requests before, ${by}`, async () => {
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<string>();
    const echo = () => {
      asked.resolve();
      return answer.promise;
    };
    await using door = await openFastDoor({ fastPath, echo });
    const { socket, text, closed } = await dial(door.url);
    socket.write(post('1'));
    await asked.promise;
    socket.end('GET /things/a HTTP/1.1\r\n : y\r\n\r\n');
    await delay(50);
    answer.resolve('stored');
    await closed;
    assert.match(text(), /^HTTP\/1\.1 200 [\s\S]+?\r\n\r\nstored/);
  });

  test(`a method of another protocol is refused as an unknown one, and not logged, ${by}`, async () => {
    await using door = await openFastDoor({ fastPath });
    const { socket, text, closed } = await dial(door.url);
    socket.write(`${GET}DESCRIBE /things/a RTSP/1.0\r\nHost: x\r\n\r\n`);
    await closed;
    assert.deepEqual(statuses(text()), ['200', '400']);
    assert.ok(text().endsWith('\r\n\r\nHPE_INVALID_METHOD'));
    assert.deepEqual(
      door.log.entries.filter(({ level }) => level === 'warn'),
      [],
    );
  });
}
