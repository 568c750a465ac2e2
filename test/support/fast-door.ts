import {
  addEndpoint,
  createListener,
  type Endpoint,
  type Reply,
  type RequestContext,
  readRawBodies,
} from '@portico/transport';
import type { FastifyInstance } from 'fastify';
import { FastRequestContext } from '../../packages/transport/fast-path/fast-context.ts';
import { StoreUnavailableError } from '../../src/core/errors.ts';
import { type MaybePromise, whenReady } from '../../src/core/scheduler.ts';
import { openLog } from '../../src/telemetry/log.ts';
import { keepConnection } from './connections.ts';
import { captureLog } from './log-capture.ts';

/** The largest body of the routes, in bytes. */
export const LIMIT = 20;

/** What POST /echo answers. */
export type Echo = (exchange: RequestContext) => MaybePromise<Reply['body']>;

/** The transport of an exchange, and what came by it. */
export function told(exchange: RequestContext, what: unknown): string {
  return `${exchange instanceof FastRequestContext ? 'fast' : 'fastify'}: ${what}`;
}

export const echoBody: Echo = (exchange) => told(exchange, exchange.body);

/**
 * A listener with GET /things/<param>, POST /echo and POST /slash/, whose replies tell the transport that brought the
 * request. `change` is what somebody adds after the wiring.
 */
export async function openFastDoor({
  change = () => {},
  echo = echoBody,
  fastPath = true,
}: {
  change?: (app: FastifyInstance) => unknown;
  echo?: Echo;
  fastPath?: boolean;
} = {}) {
  const capture = captureLog();
  const listener = createListener({
    door: 'test',
    host: '127.0.0.1',
    port: 0,
    portHint: '--test-port',
    log: await openLog({ level: 'info', stream: capture.stream }),
    errors: { contentType: 'text/plain', body: ({ code }) => code },
    fastPath,
  });
  const { app } = listener;
  const recorded: string[] = [];
  app.addHook('onRoute', (route) => {
    const record = (method: string, status: number) => void recorded.push(`${method} ${route.url} ${status}`);
    route.config = { ...route.config, record };
  });
  listener.watchHooks();
  const text = (body: MaybePromise<Reply['body']>, status = 200): MaybePromise<Reply> =>
    whenReady(body, (there) => ({ status, type: 'text/plain', body: there }));
  const byParam: Endpoint = {
    bodyLimit: 0,
    handle(exchange) {
      if (exchange.param === 'thrown') throw new StoreUnavailableError('no store');
      if (exchange.param === 'rejected') return Promise.reject(new StoreUnavailableError('no store'));
      if (exchange.param === 'none') return { status: 204, type: '', body: '' };
      const query = Object.entries(exchange.query);
      return text(told(exchange, query.length === 0 ? exchange.param : JSON.stringify(query)));
    },
  };
  const byBody: Endpoint = { bodyLimit: LIMIT, handle: (exchange) => text(echo(exchange)) };
  app.register((room, _options, done) => {
    readRawBodies(room);
    addEndpoint(room, 'GET', '/things/:param', byParam);
    addEndpoint(room, 'POST', '/echo', byBody);
    addEndpoint(room, 'POST', '/slash/', byBody);
    done();
  });
  await change(app);
  const url = await listener.listen();
  const connection = await keepConnection(url);
  const { ask } = connection;
  return {
    url,
    app,
    listener,
    recorded,
    log: capture,
    ask,
    get: async (path: string) => (await ask(path)).body,
    post: async (path: string, body: string) => (await ask(path, { method: 'POST', body })).body,
    async [Symbol.asyncDispose]() {
      connection[Symbol.dispose]();
      await listener[Symbol.asyncDispose]();
    },
  };
}
