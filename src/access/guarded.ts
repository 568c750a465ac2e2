import {
  type Endpoint,
  FastifyRequestContext,
  type RequestContext,
  setRequestContext,
} from '@portico/transport';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import { createSecretResolver } from '../config/secrets.ts';
import type { ErrorCode } from '../core/error-codes.ts';
import { whenReady } from '../core/maybe-promise.ts';
import type { DoorApi } from '../http/openapi.ts';
import type { CorsPolicy } from './cors.ts';
import { type ApiOptions, openAccessPolicy } from './open-policy.ts';
import { isRequired } from './permission.ts';
import { AccessPolicy } from './policy.ts';

const CREDENTIALS = [
  'UNAUTHORIZED',
  'LACKS_SCOPE',
  'TOO_MANY_ATTEMPTS',
  'NO_KEYS',
] as const satisfies readonly ErrorCode[];

/** What an access policy adds to the description of a REST door. */
export function accessApi({ rules }: AccessPolicy): Pick<DoorApi, 'security' | 'refusals'> {
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

type Authorize = NonNullable<Endpoint['authorize']>;
/** How an access policy lets a request in. */
type Enter = (policy: AccessPolicy, ctx: RequestContext) => ReturnType<Authorize>;

/** What stands before the endpoints of a door. */
export interface Guards {
  /** Whose pages may read the replies; undefined where that is nobody's. */
  readonly cors: CorsPolicy | undefined;
  /** What lets requests in; undefined where everybody may. */
  readonly policy: AccessPolicy | undefined;
}

/** Has guards judge the requests of an endpoint before the endpoint does; without any it is the endpoint itself. */
export function guarded(endpoint: Endpoint, { cors, policy }: Guards, enter: Enter): Endpoint {
  if (cors === undefined && policy === undefined) return endpoint;
  const { authorize } = endpoint;
  return {
    ...endpoint,
    authorize(ctx, bodyLength) {
      // A page is to read refusals too.
      cors?.apply(ctx);
      return whenReady(policy && enter(policy, ctx), () => authorize?.(ctx, bodyLength));
    },
  };
}

/** The same for a route of Fastify's own. */
export function guardHook({ cors, policy }: Guards, enter: Enter): onRequestHookHandler {
  return (request, reply, done) => {
    if (cors === undefined && policy === undefined) return done();
    try {
      const ctx = new FastifyRequestContext(request, reply, undefined);
      setRequestContext(request, ctx);
      cors?.apply(ctx);
      const authorized = policy && enter(policy, ctx);
      if (authorized instanceof Promise) authorized.then(() => done(), done);
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
  policy: AccessPolicy | undefined,
  ctx: Pick<RequestContext, 'caller'>,
  ...last: readonly [T] | readonly []
): AsyncIterable<T> {
  if (policy === undefined || ctx.caller === undefined) return source;
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
      if (step.done === true || policy.mayGoOn(ctx)) return step;
      const ended = await end();
      return last.length === 0 ? ended : { done: false, value: last[0] };
    },
    return: end,
  };
  return values;
}

/** The access policy of a plugin: one that is open already and that its opener disposes of, or one of its own. Rejects with ConfigError. */
export async function pluginPolicy(
  app: FastifyInstance,
  api: AccessPolicy | ApiOptions | undefined,
): Promise<AccessPolicy | undefined> {
  if (api === undefined || api instanceof AccessPolicy) return api;
  const resolve = createSecretResolver(process.env, process.cwd());
  const policy = await openAccessPolicy(api, { resolve, name: 'options', log: app.log });
  if (policy === undefined) return undefined;
  app.addHook('onClose', async () => policy[Symbol.asyncDispose]());
  return policy;
}
