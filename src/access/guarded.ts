import { type Endpoint, type Exchange, FastifyExchange, setExchange } from '@portico/transport';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import { createSecretResolver } from '../config/secrets.ts';
import type { ErrorCode } from '../core/error-codes.ts';
import { whenReady } from '../core/maybe-promise.ts';
import type { DoorApi } from '../http/openapi.ts';
import type { CorsPolicy } from './cors.ts';
import { ApiGate } from './gate.ts';
import { isRequired } from './need.ts';
import { type ApiOptions, openGate } from './open-gate.ts';

const CREDENTIALS = [
  'UNAUTHORIZED',
  'LACKS_SCOPE',
  'TOO_MANY_ATTEMPTS',
  'NO_KEYS',
] as const satisfies readonly ErrorCode[];

/** What a gate adds to the description of a REST door. */
export function gateApi({ rules }: ApiGate): Pick<DoorApi, 'security' | 'refusals'> {
  const { required, scopes, takesPasswords, hasRate, hasLoadLimits } = rules;
  const refusals: readonly ErrorCode[] = [
    ...(hasRate ? (['RATE_LIMITED'] as const) : []),
    ...(hasLoadLimits ? (['OVERLOADED'] as const) : []),
  ];
  if (required === 'none') return { refusals };
  return {
    refusals,
    security: {
      schemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        ...(takesPasswords && { basic: { type: 'http', scheme: 'basic' } }),
      },
      needs(_path, method) {
        const need = method === 'get' ? 'read' : 'write';
        if (!isRequired(required, need)) return undefined;
        return { bearer: [scopes[need]], ...(takesPasswords && { basic: [scopes[need]] }) };
      },
      refusals: takesPasswords ? [...CREDENTIALS, 'TOO_MANY_LOGINS'] : CREDENTIALS,
    },
  };
}

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

/**
 * The values of a source until the credentials of its caller expire or are revoked; then `last`, or nothing, in the place
 * of the next one ends it. Returning it returns the source at once.
 */
export function whileValid<T>(
  source: AsyncIterable<T>,
  gate: ApiGate | undefined,
  exchange: Pick<Exchange, 'caller'>,
  ...last: readonly [T] | readonly []
): AsyncIterable<T> {
  if (gate === undefined || exchange.caller === undefined) return source;
  const iterator = source[Symbol.asyncIterator]();
  let isOver = false;
  const end = async () => {
    isOver = true;
    await iterator.return?.();
    return { done: true, value: undefined } as const;
  };
  const values: AsyncIterableIterator<T> = {
    [Symbol.asyncIterator]: () => values,
    async next() {
      if (isOver) return { done: true, value: undefined };
      const step = await iterator.next();
      if (step.done === true || gate.mayGoOn(exchange)) return step;
      const ended = await end();
      return last.length === 0 ? ended : { done: false, value: last[0] };
    },
    return: end,
  };
  return values;
}

/** The gate of a plugin: one that is open already and that its opener disposes of, or one of its own. Rejects with ConfigError. */
export async function pluginGate(
  app: FastifyInstance,
  api: ApiGate | ApiOptions | undefined,
): Promise<ApiGate | undefined> {
  if (api === undefined || api instanceof ApiGate) return api;
  const resolve = createSecretResolver(process.env, process.cwd());
  const gate = await openGate(api, { resolve, name: 'options', log: app.log });
  if (gate === undefined) return undefined;
  app.addHook('onClose', async () => gate[Symbol.asyncDispose]());
  return gate;
}
