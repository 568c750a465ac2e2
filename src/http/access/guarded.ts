import type { onRequestHookHandler } from 'fastify';
import { whenReady } from '../../core/maybe-promise.ts';
import type { Endpoint, Exchange } from '../endpoint.ts';
import { FastifyExchange } from '../fastify-exchange.ts';
import type { ApiGate } from './api-gate.ts';

type Admit = NonNullable<Endpoint['admit']>;
/** How a gate lets an exchange in. */
type Enter = (gate: ApiGate, exchange: Exchange) => ReturnType<Admit>;

/** Has a gate judge the requests of an endpoint before the endpoint does; without a gate it is the endpoint itself. */
export function guarded(endpoint: Endpoint, gate: ApiGate | undefined, enter: Enter): Endpoint {
  if (gate === undefined) return endpoint;
  const { admit } = endpoint;
  return {
    ...endpoint,
    admit: (exchange, bodyLength) => whenReady(enter(gate, exchange), () => admit?.(exchange, bodyLength)),
  };
}

/** The same for a route of Fastify's own. */
export function gateHook(gate: ApiGate | undefined, enter: Enter): onRequestHookHandler {
  return (request, reply, done) => {
    if (gate === undefined) return done();
    try {
      const admitted = enter(gate, new FastifyExchange(request, reply, undefined));
      if (admitted instanceof Promise) admitted.then(() => done(), done);
      else done();
    } catch (error) {
      done(error as Error);
    }
  };
}
