import type { FastifyInstance } from 'fastify';
import { StoreUnavailableError } from '../../src/core/store-errors.ts';
import { readRawBodies } from '../../src/http/body/read-bodies.ts';
import type { DirectExchange } from '../../src/http/fast-path/fast-exchange.ts';
import { createListener } from '../../src/http/server/listener.ts';
import { openLog } from '../../src/observability/log/log.ts';
import { keepConnection } from './kept-connection.ts';
import { captureLog } from './log-capture.ts';

/** The largest body of the routes, in bytes. */
export const LIMIT = 20;

/** What the part of POST /echo in the lane does with a body. */
type Echo = (exchange: DirectExchange, body: Buffer) => void;

/**
 * A listener with GET /things/<param>, POST /echo and POST /slash/, each answered by the lane or by the framework, which
 * its body tells. `change` is what somebody adds after the wiring.
 */
export async function openLaneDoor({
  change = () => {},
  echo = (exchange, body) => exchange.send(200, 'text/plain', `lane: ${body}`),
}: {
  change?: (app: FastifyInstance) => unknown;
  echo?: Echo;
} = {}) {
  const capture = captureLog();
  const listener = createListener({
    door: 'test',
    host: '127.0.0.1',
    port: 0,
    portHint: '--test-port',
    log: await openLog({ level: 'info', stream: capture.stream }),
    errors: { contentType: 'text/plain', body: ({ code }) => code },
  });
  const { app } = listener;
  const recorded: string[] = [];
  app.addHook('onRoute', (route) => {
    const record = (method: string, status: number) => void recorded.push(`${method} ${route.url} ${status}`);
    route.config = { ...route.config, record };
  });
  listener.watchHooks();
  app.register((room, _options, done) => {
    readRawBodies(room, { bodyLimit: LIMIT });
    const byParam = (exchange: DirectExchange) => {
      if (exchange.param === 'thrown') throw new StoreUnavailableError('no store');
      if (exchange.param === 'unusual') return false;
      exchange.answer(
        exchange.param === 'rejected'
          ? Promise.reject(new StoreUnavailableError('no store'))
          : exchange.param,
        (param) => exchange.send(200, 'text/plain', `lane: ${param}`),
      );
      return true;
    };
    const byBody = (exchange: DirectExchange) => {
      const { body } = exchange;
      if (body.length === 0 || body.length > LIMIT) return false;
      echo(exchange, body);
      return true;
    };
    room.get('/things/:param', { config: { direct: byParam } }, () => 'framework');
    room.post('/echo', { config: { direct: byBody } }, ({ body }) => `framework: ${body ?? ''}`);
    room.post('/slash/', { config: { direct: byBody } }, () => 'framework');
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
