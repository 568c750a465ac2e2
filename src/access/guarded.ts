import type { Endpoint, RequestContext } from '@portico/transport';
import type { FastifyInstance } from 'fastify';
import { createSecretResolver } from '../config/secrets.ts';
import type { ErrorCode } from '../core/error-codes.ts';
import { whenReady } from '../core/scheduler.ts';
import type { DoorApi } from '../http/openapi.ts';
import type { CorsPolicy } from './cors.ts';
import { type ApiOptions, openAccessPolicy } from './open-policy.ts';
import { AccessPolicy, isRequired } from './policy.ts';

const CREDENTIALS = [
  'UNAUTHORIZED',
  'LACKS_SCOPE',
  'TOO_MANY_ATTEMPTS',
  'NO_KEYS',
] as const satisfies readonly ErrorCode[];

/**
 * The security schemes and refusals that an access policy adds to the OpenAPI document of a REST door, or of
 * one relation.
 */
export function accessApi(
  { rules }: AccessPolicy,
  relation?: string,
): Pick<DoorApi, 'security' | 'refusals'> {
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
        const scope = relation === undefined ? scopes[need] : `${relation}:${need}`;
        return { bearer: [scope], ...(takesPasswords && { basic: [scope] }) };
      },
      refusals: takesPasswords ? [...CREDENTIALS, 'TOO_MANY_LOGINS'] : CREDENTIALS,
    },
  };
}

type Authorize = NonNullable<Endpoint['authorize']>;
/** Authorizes a request by an access policy. */
type Enter = (policy: AccessPolicy, ctx: RequestContext) => ReturnType<Authorize>;

export interface Guards {
  /** Decides which other origins' pages may read replies; undefined if none may. */
  readonly cors: CorsPolicy | undefined;
  /** Authorizes requests; undefined if the door is open to everyone. */
  readonly policy: AccessPolicy | undefined;
}

/** Has the guards judge an endpoint's requests first; without guards the endpoint is unchanged. */
export function guarded(endpoint: Endpoint, { cors, policy }: Guards, enter: Enter): Endpoint {
  if (cors === undefined && policy === undefined) return endpoint;
  const { authorize } = endpoint;
  return {
    ...endpoint,
    authorize(ctx, bodyLength) {
      // Pages must be able to read refusals too.
      cors?.apply(ctx);
      return whenReady(policy && enter(policy, ctx), () => authorize?.(ctx, bodyLength));
    },
  };
}

/**
 * Yields the values of a source until its caller's credentials expire or are revoked, then `last` if there is
 * one, and ends. Returning the result returns the source at once.
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

/**
 * The access policy of a plugin. A policy that is passed in is used as it is, and its opener disposes of it;
 * one that is opened from options is disposed of with the plugin. `hasRules` says that rules ask who the caller is.
 * Rejects with ConfigError.
 */
export async function pluginPolicy(
  app: FastifyInstance,
  api: AccessPolicy | ApiOptions | undefined,
  hasRules = false,
): Promise<AccessPolicy | undefined> {
  if (api === undefined || api instanceof AccessPolicy) return api;
  const resolve = createSecretResolver(process.env, process.cwd());
  const policy = await openAccessPolicy(api, {
    resolve,
    name: 'options',
    log: app.log,
    hasRules,
  });
  if (policy === undefined) return undefined;
  app.addHook('onClose', async () => policy[Symbol.asyncDispose]());
  return policy;
}
