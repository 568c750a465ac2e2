import type { onRequestHookHandler } from 'fastify';
import { whenReady } from '../../core/maybe-promise.ts';
import { setExchange } from '../add-endpoint.ts';
import type { Endpoint, Exchange } from '../endpoint.ts';
import { FastifyExchange } from '../fastify-exchange.ts';
import type { ApiGate } from './api-gate.ts';
import type { CorsPolicy } from './cors.ts';

type Admit = NonNullable<Endpoint['admit']>;
/** How a gate lets an exchange in. */
type Enter = (gate: ApiGate, exchange: Exchange) => ReturnType<Admit>;

/** What stands before the endpoints of a door. */
export interface Guards {
  /** Whose pages may read the replies; undefined where that is nobody's. */
  readonly cors: CorsPolicy | undefined;
  /** What lets requests in; undefined where everybody may. */
  readonly gate: ApiGate | undefined;
}

/** Has guards judge the requests of an endpoint before the endpoint does; without any it is the endpoint itself. */
export function guarded(endpoint: Endpoint, { cors, gate }: Guards, enter: Enter): Endpoint {
  if (cors === undefined && gate === undefined) return endpoint;
  const { admit } = endpoint;
  return {
    ...endpoint,
    admit(exchange, bodyLength) {
      // A page is to read refusals too.
      cors?.apply(exchange);
      return whenReady(gate && enter(gate, exchange), () => admit?.(exchange, bodyLength));
    },
  };
}

/** The same for a route of Fastify's own. */
export function guardHook({ cors, gate }: Guards, enter: Enter): onRequestHookHandler {
  return (request, reply, done) => {
    if (cors === undefined && gate === undefined) return done();
    try {
      const exchange = new FastifyExchange(request, reply, undefined);
      setExchange(request, exchange);
      cors?.apply(exchange);
      const admitted = gate && enter(gate, exchange);
      if (admitted instanceof Promise) admitted.then(() => done(), done);
      else done();
    } catch (error) {
      done(error as Error);
    }
  };
}
