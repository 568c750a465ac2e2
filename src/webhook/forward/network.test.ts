import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { test } from 'node:test';
import { silentDns } from '../../../test/support/dns-server.ts';
import { newDelivery } from '../../../test/support/new-delivery.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { openDatabase } from '../../database/open-database.ts';
import { Dispatcher } from '../../inbox/dispatch/dispatcher.ts';
import { AttemptError, NotSentError } from '../../inbox/dispatch/target.ts';
import { forwardTarget } from './forward-target.ts';
import { Network, type NetworkOptions } from './network.ts';
import { createPoster } from './post.ts';

const LONG = 600_000;
const never = new AbortController().signal;
const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => assert.fail('it succeeded'),
    (error: unknown) => error,
  );

async function listen(server: Server) {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

function poster(options: NetworkOptions) {
  const network = new Network({ limit: LONG, connectTime: LONG, ...options });
  const posting = createPoster({ network, allowPrivate: true });
  const post = (url: string) =>
    posting.post({ url: new URL(url), headers: {}, body: Buffer.from('1'), signal: never });
  return {
    network,
    posting,
    post,
    [Symbol.dispose]() {
      network[Symbol.dispose]();
      posting[Symbol.dispose]();
    },
  };
}

/** A receiver that answers all. */
async function receiver() {
  const server = createHttpServer((_request, response) => response.writeHead(204).end());
  const port = await listen(server);
  return {
    port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Takes connections and says nothing, so that no TLS connection opens. */
async function silentHost() {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.on('error', () => {}).resume();
  });
  const port = await listen(server);
  return {
    url: `https://127.0.0.1:${port}/`,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      server.close();
      await once(server, 'close');
    },
  };
}

test('names without an answer delay no others: a good host by name is reached meanwhile', async () => {
  await using dns = await silentDns();
  await using good = await receiver();
  using at = poster({ servers: [dns.address] });
  const dead = Promise.all(Array.from({ length: 40 }, (_, i) => failure(at.post(`http://dead-${i}.test/`))));
  await waitFor('the names to be asked for', () => dns.asked().length >= 40);
  for (let i = 0; i < 20; i++) {
    assert.equal((await at.post(`http://localhost:${good.port}/`)).status, 204);
  }
  at[Symbol.dispose]();
  for (const error of await dead) assert.ok(error instanceof NotSentError, String(error));
});

test('all that waits for a silent host waits once, and then it is left alone', async () => {
  await using silent = await silentHost();
  await using good = await receiver();
  using at = poster({ connectTime: 300, silence: LONG });
  const errors = await Promise.all(Array.from({ length: 8 }, () => failure(at.post(silent.url))));
  for (const error of errors) {
    assert.ok(error instanceof AttemptError);
    assert.match(error.message, /took no connection within 300 ms/);
  }
  const connections = silent.connections();
  const later = await failure(at.post(silent.url));
  assert.ok(later instanceof AttemptError);
  assert.match(later.message, /took no connection a moment ago/);
  assert.ok(Number(later.retryAfter) > 0);
  assert.equal(silent.connections(), connections, 'no connection was opened');
  assert.equal((await at.post(`http://127.0.0.1:${good.port}/`)).status, 204, 'another port is another host');
});

test('the end of the network ends what has no connection yet, as not sent', async () => {
  await using silent = await silentHost();
  using at = poster({});
  const pending = failure(at.post(silent.url));
  await waitFor('the connection to be begun', () => silent.connections() === 1);
  at.network[Symbol.dispose]();
  assert.ok((await pending) instanceof NotSentError);
  assert.ok((await failure(at.post(silent.url))) instanceof NotSentError);
});

test('a stop releases what waits for a dead name; the attempt does not count', async () => {
  await using dns = await silentDns();
  await using database = openDatabase('sqlite::memory:');
  const { inbox } = database;
  using at = poster({ servers: [dns.address] });
  const limits = { concurrency: 3, timeout: LONG, maxAttempts: 1, backoff: { base: 1, cap: 1 } };
  const settings = { name: 'dead', url: new URL('http://dead.test/'), secrets: [], allowPrivate: true };
  const target = forwardTarget(settings, limits, undefined, at.posting, { maxBodyBytes: 1 });
  await inbox.append(newDelivery({ jobs: [{ target: target.name, orderKey: null }] }));
  const settled: string[] = [];
  const events = {
    settled: (_job: unknown, outcome: string) => void settled.push(outcome),
    leaseLost: () => assert.fail('lost'),
    overdue: () => assert.fail('overdue'),
    storeFailed: (error: unknown) => assert.fail(String(error)),
  };
  const dispatcher = new Dispatcher({ inbox, targets: [target], lease: LONG, events });
  dispatcher.start();
  await waitFor('the name to be asked for', () => dns.asked().length > 0);
  at.network[Symbol.dispose]();
  await dispatcher.stop(never);
  assert.deepEqual(settled, ['released']);
  const [again] = await inbox.claim(target.name, 9, 'other', LONG, { now: Date.now() + LONG });
  assert.equal(again?.attempt, 1);
});
