import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { openLog } from '../../../src/telemetry/log.ts';
import { within } from '../../../test/support/running-time.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { createListener, type Listener } from './listener.ts';

const never = new AbortController().signal;

interface Door extends AsyncDisposable {
  readonly listener: Listener;
  readonly url: string;
}

async function create(): Promise<Listener> {
  return createListener({
    door: 'test',
    host: '127.0.0.1',
    port: 0,
    portHint: '--test-port',
    log: await openLog({ level: 'silent' }),
    errors: { contentType: 'text/plain', body: ({ code }) => code },
  });
}

/** A listener with `routes` and /hello on a free port. */
async function open(routes: (app: FastifyInstance) => void = () => {}): Promise<Door> {
  const listener = await create();
  listener.app.get('/hello', (_request, reply) => reply.send('hello'));
  routes(listener.app);
  const url = await listener.listen();
  return { listener, url, [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose]() };
}

/** A route that answers when the test says so, and how often it was asked. */
function slow(): { readonly routes: (app: FastifyInstance) => void; asked: number; finish(): void } {
  const { promise, resolve } = Promise.withResolvers<string>();
  const route = {
    asked: 0,
    finish: () => resolve('finished'),
    routes: (app: FastifyInstance) => {
      app.get('/slow', () => {
        route.asked++;
        return promise;
      });
    },
  };
  return route;
}

/** One request over an agent, which keeps the connection when it may. */
async function ask(url: string, agent: Agent): Promise<IncomingMessage & { readonly body: string }> {
  const [reply] = (await once(get(url, { agent }), 'response')) as [IncomingMessage];
  return Object.assign(reply, { body: await textOf(reply) });
}

test('a draining listener answers and asks its clients to go elsewhere', async () => {
  await using door = await open();
  using agent = disposable(new Agent({ keepAlive: true, maxSockets: 1 }));
  assert.equal((await ask(`${door.url}/hello`, agent)).headers.connection, 'keep-alive');
  door.listener.drain();
  const reply = await ask(`${door.url}/hello`, agent);
  assert.equal(reply.statusCode, 200);
  assert.equal(reply.headers.connection, 'close');
  assert.equal((await ask(`${door.url}/none`, agent)).headers.connection, 'close', 'so does a refusal');
});

function disposable(agent: Agent): Agent & Disposable {
  return Object.assign(agent, { [Symbol.dispose]: () => agent.destroy() });
}

test('a close waits for the running request, takes no new connection and ends idle ones', async () => {
  const route = slow();
  await using door = await open(route.routes);
  using agent = disposable(new Agent({ keepAlive: true }));
  await ask(`${door.url}/hello`, agent);
  using briefly = disposable(new Agent({ keepAlive: false }));
  const running = ask(`${door.url}/slow`, briefly);
  await waitFor('the request to run', () => route.asked === 1);
  let closed = false;
  const closing = door.listener.close(never).then(() => {
    closed = true;
  });
  await waitFor('new connections to be refused', () =>
    fetch(`${door.url}/hello`).then(
      () => false,
      () => true,
    ),
  );
  assert.equal(closed, false);
  route.finish();
  assert.equal((await running).body, 'finished');
  await closing;
});

test('the reply to a request that ran before the drain closes its connection too', async () => {
  const route = slow();
  await using door = await open(route.routes);
  using agent = disposable(new Agent({ keepAlive: true }));
  const running = ask(`${door.url}/slow`, agent);
  await waitFor('the request to run', () => route.asked === 1);
  door.listener.drain();
  route.finish();
  assert.equal((await running).headers.connection, 'close');
});

test('a close waits for no connection on which nothing runs any more', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  await using door = await open((app) => {
    app.get('/begun', (_request, reply) => {
      const body = new PassThrough();
      body.write('begun ');
      void promise.then(() => body.end('ended'));
      return reply.send(body);
    });
  });
  using agent = disposable(new Agent({ keepAlive: true }));
  const [reply] = (await once(get(`${door.url}/begun`, { agent }), 'response')) as [IncomingMessage];
  assert.equal(reply.headers.connection, 'keep-alive', 'promised before anybody knew');
  const closing = door.listener.close(never);
  resolve();
  assert.equal(await textOf(reply), 'begun ended');
  // Less than an idle connection may live.
  await within(4_000, () => closing);
});

/** Long before the limits of a connection would cut it, in milliseconds. */
const SOON = 10_000;

test('at the deadline a close cuts what still runs', async () => {
  const route = slow();
  await using door = await open(route.routes);
  const running = fetch(`${door.url}/slow`).then(
    () => 'answered',
    () => 'cut',
  );
  await waitFor('the request to run', () => route.asked === 1);
  const deadline = new AbortController();
  const closing = door.listener.close(deadline.signal);
  await waitFor('the close to begin', () => !door.listener.app.server.listening);
  deadline.abort();
  assert.equal(await within(SOON, () => running), 'cut');
  await within(SOON, () => closing);
});

test('disposing of a listener waits for nobody', async () => {
  const route = slow();
  const door = await open(route.routes);
  const running = fetch(`${door.url}/slow`).catch(() => 'cut');
  await waitFor('the request to run', () => route.asked === 1);
  await within(SOON, () => door[Symbol.asyncDispose]());
  assert.equal(await running, 'cut');
  await door[Symbol.asyncDispose]();
});

test('a listener that never listened can be closed', async () => {
  const listener = await create();
  await listener.close(never);
});
