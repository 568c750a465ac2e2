import {
  clientKey,
  HttpProblem,
  isAudited,
  type OnRefused,
  type RequestContext,
  toProblem,
} from '@portico/transport';
import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import { Authentication, Challenges, type TokenProvider } from './authentication.ts';
import { authenticator, type BasicUser, FailureLimit, type FailureLimitOptions } from './basic.ts';
import { isRequired, type Permission, type PermissionScopes, type Required } from './permission.ts';
import { ClientRate, type Load, type RateRule, rateFields, seconds } from './rates.ts';

interface AccessPolicyOptions {
  readonly required: Required;
  readonly scopes: PermissionScopes;
  readonly authentication: Authentication;
  readonly challenges: Challenges;
  /** Limits the requests of each client; default no limit. */
  readonly rate?: ClientRate | undefined;
  /** Refuses requests while the service is overloaded; default no limit. */
  readonly load?: Load | undefined;
  /** Called for each refusal that the status of the reply does not show. */
  readonly onRefused?: OnRefused | undefined;
}

/** Authorizes requests to REST and GraphQL. One access policy serves both doors. */
export class AccessPolicy implements AsyncDisposable {
  readonly #options: AccessPolicyOptions;
  readonly #rateFields: ReturnType<typeof rateFields> | undefined;
  readonly #resources = new AsyncDisposableStack();

  constructor(options: AccessPolicyOptions) {
    this.#options = options;
    this.#rateFields = options.rate && rateFields(options.rate.rule);
  }

  /** Ties a resource to the access policy, which disposes of it; returns the resource. */
  use<T extends Disposable | AsyncDisposable>(resource: T): T {
    return this.#resources.use(resource);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#resources.disposeAsync();
  }

  /** The requirements of the policy, for OpenAPI documents. */
  get rules() {
    const { required, scopes, challenges, rate, load } = this.#options;
    return {
      required,
      scopes,
      takesPasswords: challenges.takesPasswords,
      hasRate: rate !== undefined,
      hasLoadLimits: load !== undefined,
    };
  }

  /**
   * Authorizes a request with one operation, before its body is read, and sets `ctx.caller`. Throws or
   * rejects with HttpProblem.
   */
  authorize(ctx: RequestContext, need: Permission): MaybePromise<void> {
    return whenReady(this.authenticate(ctx), () => this.authorizeOperation(ctx, need));
  }

  /**
   * Lets a request in before its operations are read; `authorizeOperation` judges each of them. Throws or
   * rejects with HttpProblem.
   */
  authorizeAny(ctx: RequestContext): MaybePromise<void> {
    return whenReady(this.authenticate(ctx), () => this.#requireCaller(ctx));
  }

  /**
   * Identifies and counts a request; its client may still send credentials to `authenticateLate`. Throws or
   * rejects with HttpProblem.
   */
  authenticate(ctx: RequestContext): MaybePromise<void> {
    this.#refuseLate(undefined);
    const identified = this.#identify(ctx, ctx.headers.authorization);
    if (this.#options.rate === undefined) return identified;
    return whenReady(identified, () => this.#countRequest(ctx));
  }

  /**
   * Lets a request in with credentials that its client sent after the head, if it sent any. Throws or rejects
   * with HttpProblem.
   */
  authenticateLate(ctx: RequestContext, authorization: string | undefined): MaybePromise<void> {
    return whenReady(this.#identify(ctx, authorization), () => this.#requireCaller(ctx));
  }

  /** Counts a further operation of a request that was counted already. Throws HttpProblem. */
  countOperation(ctx: RequestContext): void {
    const quota = this.#options.rate?.take(clientKey(ctx), performance.now());
    if (quota?.isWithin === false) throw beyondRate(quota.wait);
  }

  /** Authorizes one operation of an authenticated request. Throws HttpProblem. */
  authorizeOperation(ctx: RequestContext, need: Permission): void {
    this.#refuseLate(need);
    const { required, scopes, challenges } = this.#options;
    if (!isRequired(required, need)) return;
    const { caller } = ctx;
    if (caller === undefined) throw challenges.missing;
    if (!this.#options.authentication.isValid(caller)) throw challenges.invalid;
    const scope = scopes[need];
    if (!caller.scopes.has(scope)) throw challenges.lacksScope(scope);
  }

  /** Whether the caller of an authorized request also has a permission; unlike `authorize`, never throws. */
  allows({ caller }: Pick<RequestContext, 'caller'>, need: Permission): boolean {
    const { required, scopes, authentication } = this.#options;
    if (!isRequired(required, need)) return true;
    return caller !== undefined && authentication.isValid(caller) && caller.scopes.has(scopes[need]);
  }

  /** Whether a stream or WebSocket may continue, that is, its caller's credentials are still valid. */
  mayGoOn({ caller }: Pick<RequestContext, 'caller'>): boolean {
    return caller === undefined || this.#options.authentication.isValid(caller);
  }

  /**
   * Reports a refusal that the status of the reply does not show: of an operation in a batch or on a
   * WebSocket.
   */
  noteRefusal(ctx: RequestContext, error: unknown): void {
    const { onRefused } = this.#options;
    const { status, code } = toProblem(error);
    if (onRefused === undefined || !isAudited(status)) return;
    const { id, client, method, target, headers, caller } = ctx;
    onRefused({ id, client, method, target, headers, status, code, caller: caller?.name });
  }

  #refuseLate(need: Permission | undefined): void {
    const refusal = this.#options.load?.refusal(need);
    if (refusal !== undefined) throw refusal;
  }

  #countRequest(ctx: RequestContext): void {
    const { rate } = this.#options;
    if (rate === undefined || this.#rateFields === undefined) return;
    const quota = rate.take(clientKey(ctx), performance.now());
    ctx.addHeaders(this.#rateFields(quota));
    if (!quota.isWithin) throw beyondRate(quota.wait);
  }

  #requireCaller(ctx: RequestContext): void {
    if (ctx.caller !== undefined || this.#options.required !== 'all') return;
    throw this.#options.challenges.missing;
  }

  #identify(ctx: RequestContext, authorization: string | undefined): MaybePromise<void> {
    if (authorization === undefined || this.#options.required === 'none') return;
    try {
      const caller = this.#options.authentication.callerOf(authorization, ctx);
      if (!(caller instanceof Promise)) {
        ctx.caller = caller;
        return;
      }
      return caller.then(
        (late) => {
          ctx.caller = late;
        },
        (error: unknown) => {
          this.#countRequest(ctx);
          throw error;
        },
      );
    } catch (error) {
      // Requests with wrong credentials count against the rate too.
      this.#countRequest(ctx);
      throw error;
    }
  }
}

function beyondRate(wait: number): HttpProblem {
  return new HttpProblem(429, 'RATE_LIMITED', 'Too many requests; wait a while', {
    headers: { 'retry-after': String(Math.max(1, seconds(wait))) },
  });
}

/** Configures an access policy. */
interface PolicyParts extends Pick<FailureLimitOptions, 'maxFailures' | 'onLimit'> {
  readonly required: Required;
  readonly scopes: PermissionScopes;
  /** Token providers, asked in this order. */
  readonly sources: readonly TokenProvider[];
  readonly users: readonly BasicUser[];
  /** Scopes of each user in addition to the roles; an empty list disables Basic. */
  readonly basicScopes: readonly string[];
  readonly rate?: RateRule | undefined;
  readonly load?: Load | undefined;
  readonly onRefused?: OnRefused | undefined;
}

/**
 * Creates the access policy of REST and GraphQL. Throws UserNameError, EmptySecretError or PasswordHashError.
 */
export function createAccessPolicy(parts: PolicyParts): AccessPolicy {
  const { required, scopes, sources, users, basicScopes, onRefused } = parts;
  const takesPasswords = basicScopes.length > 0;
  const challenges = new Challenges(takesPasswords);
  const failures = new FailureLimit(parts);
  const authentication = new Authentication({
    sources,
    basic: takesPasswords
      ? { authenticate: authenticator(users, { failures }), scopes: basicScopes }
      : undefined,
    challenges,
    failures,
    now: Date.now,
  });
  const rate = parts.rate && new ClientRate(parts.rate);
  return new AccessPolicy({
    required,
    scopes,
    authentication,
    challenges,
    rate,
    load: parts.load,
    onRefused,
  });
}
