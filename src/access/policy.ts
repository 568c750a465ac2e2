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
  /** How many requests a client may make; default any number. */
  readonly rate?: ClientRate | undefined;
  /** What refuses requests while the service is late; default nothing. */
  readonly load?: Load | undefined;
  /** Called for each refusal that no status of a reply tells; default nobody. */
  readonly onRefused?: OnRefused | undefined;
}

/** Lets requests into REST and GraphQL, or refuses them. One access policy serves both doors. */
export class AccessPolicy implements AsyncDisposable {
  readonly #options: AccessPolicyOptions;
  readonly #rateFields: ReturnType<typeof rateFields> | undefined;
  readonly #resources = new AsyncDisposableStack();

  constructor(options: AccessPolicyOptions) {
    this.#options = options;
    this.#rateFields = options.rate && rateFields(options.rate.rule);
  }

  /** Disposes of a resource with the access policy; returns it. */
  use<T extends Disposable | AsyncDisposable>(resource: T): T {
    return this.#resources.use(resource);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#resources.disposeAsync();
  }

  /** What it asks for, for descriptions. */
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
   * Admits a request that does one thing, before its body is read, and notes its caller. Throws or rejects with
   * HttpProblem.
   */
  authorize(ctx: RequestContext, need: Permission): MaybePromise<void> {
    return whenReady(this.authenticate(ctx), () => this.authorizeOperation(ctx, need));
  }

  /** Admits a request whose operations are still to be read; `authorize` judges each. Throws or rejects with HttpProblem. */
  authorizeAny(ctx: RequestContext): MaybePromise<void> {
    return whenReady(this.authenticate(ctx), () => this.#requireCaller(ctx));
  }

  /** Admits a request whose client may still send its credentials, to `admitLate`. Throws or rejects with HttpProblem. */
  authenticate(ctx: RequestContext): MaybePromise<void> {
    this.#refuseLate(undefined);
    const identified = this.#identify(ctx, ctx.headers.authorization);
    if (this.#options.rate === undefined) return identified;
    return whenReady(identified, () => this.#countRequest(ctx));
  }

  /** Admits a request with credentials that came behind its head, if they did. Throws or rejects with HttpProblem. */
  authenticateLate(ctx: RequestContext, authorization: string | undefined): MaybePromise<void> {
    return whenReady(this.#identify(ctx, authorization), () => this.#requireCaller(ctx));
  }

  /** Counts an operation beside that which its request was counted for. Throws HttpProblem. */
  countOperation(ctx: RequestContext): void {
    const quota = this.#options.rate?.take(clientKey(ctx), performance.now());
    if (quota?.isWithin === false) throw beyondRate(quota.wait);
  }

  /** Judges one operation of a request that was authorized. Throws HttpProblem. */
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

  /** Whether the caller of a request that was authorized may also do this; unlike `authorize` it refuses nothing. */
  allows({ caller }: Pick<RequestContext, 'caller'>, need: Permission): boolean {
    const { required, scopes, authentication } = this.#options;
    if (!isRequired(required, need)) return true;
    return caller !== undefined && authentication.isValid(caller) && caller.scopes.has(scopes[need]);
  }

  /** Whether what a request has opened may go on: its credentials may have expired or been revoked since. */
  mayGoOn({ caller }: Pick<RequestContext, 'caller'>): boolean {
    return caller === undefined || this.#options.authentication.isValid(caller);
  }

  /** Notes a refusal of which the status of the reply tells nothing: of an operation in a batch or on a WebSocket. */
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
      // Wrong credentials are requests as well.
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

/** What an access policy is made of. */
interface PolicyParts extends Pick<FailureLimitOptions, 'maxFailures' | 'onLimit'> {
  readonly required: Required;
  readonly scopes: PermissionScopes;
  /** Where tokens are known from; each is asked for what those before do not know. */
  readonly sources: readonly TokenProvider[];
  readonly users: readonly BasicUser[];
  /** Scopes of each user beside the roles; without any there is no Basic. */
  readonly basicScopes: readonly string[];
  readonly rate?: RateRule | undefined;
  readonly load?: Load | undefined;
  readonly onRefused?: OnRefused | undefined;
}

/** Makes the access policy of REST and GraphQL. Throws UserNameError, EmptySecretError or PasswordHashError. */
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
