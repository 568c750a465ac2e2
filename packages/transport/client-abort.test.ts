import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { heapInUse } from '../../test/support/collect-garbage.ts';
import { onClientAbort } from './client-abort.ts';

/** Both ends of a connection, whose halves end one by one. */
async function pair() {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const client = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
  const [served] = (await once(server, 'connection')) as [Socket];
  served.resume();
  return {
    client,
    served,
    [Symbol.dispose]() {
      client.destroy();
      served.destroy();
      server.close();
    },
  };
}

/** A listener that counts its calls, and what stands for the end of the request. */
function waiting(socket: Socket) {
  let calls = 0;
  let close = () => {};
  const called = Promise.withResolvers<void>();
  const stay = onClientAbort(
    socket,
    (listener) => {
      close = listener;
    },
    () => {
      calls++;
      called.resolve();
    },
  );
  return {
    stay,
    called: called.promise,
    close: () => close(),
    get calls() {
      return calls;
    },
  };
}

test('a client that has closed its half has left after a while, whoever waits, and once', async () => {
  using connection = await pair();
  const before = [waiting(connection.served), waiting(connection.served)];
  const gone = waiting(connection.served);
  gone.stay();
  const answered = waiting(connection.served);
  answered.close();
  connection.client.end();
  await once(connection.served, 'end');
  assert.deepEqual(
    before.map(({ calls }) => calls),
    [0, 0],
  );
  const after = waiting(connection.served);
  await Promise.all([...before, after].map(({ called }) => called));
  for (const each of [...before, after, answered]) each.close();
  assert.deepEqual(
    [...before, after, answered, gone].map(({ calls }) => calls),
    [1, 1, 1, 1, 0],
  );
});

test('the sockets of long connections keep one listener and nothing of requests that have ended', async () => {
  using connection = await pair();
  const { served } = connection;
  const ended = new Set<WeakRef<() => void>>();
  for (let i = 0; i < 100; i++) {
    const listener = () => {};
    ended.add(new WeakRef(listener));
    onClientAbort(served, (close) => close(), listener);
  }
  assert.ok(served.listenerCount('end') <= 2);
  // What is weakly held stays until the tick is over.
  await new Promise((resolve) => setImmediate(resolve));
  heapInUse();
  const left = [...ended].filter((reference) => reference.deref() !== undefined);
  // The last one may still lie on the stack.
  assert.ok(left.length <= 1, `${left.length} are left`);
});
