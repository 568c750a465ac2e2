import { hash } from 'node:crypto';
import { HttpProblem, KnownCaller, type RequestContext, toProblem } from '@portico/transport';
import { attemptSource } from '../core/addresses.ts';
import { type MaybePromise, whenReady } from '../core/scheduler.ts';
import { isAudited, type OnRefused } from './audit.ts';
import { authenticator, type BasicUser, FailureLimit } from './basic.ts';
import { ClientRate, type Load, type RateRule } from './rates.ts';

/** The permission that an operation needs: `read` for queries and subscriptions, `write` for mutations. */
export type Permission = 'read' | 'write';

/** Which operations need credentials. */
type Required = 'none' | 'write' | 'all';

type PermissionScopes = Readonly<Record<Permission, string>>;

/** Whether an operation with this permission needs credentials. */
export function isRequired(required: Required, need: Permission): boolean {
  return required === 'all' || (required === 'write' && need === 'write');
}

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
  readonly #resources = new AsyncDisposableStack();

  constructor(options: AccessPolicyOptions) {
    this.#options = options;
  }

  /** Ties a resource to the access policy, which disposes of it; returns the resource. */
  use<T extends Disposable | AsyncDisposable>(resource: T): T {
    return this.#resources.use(resource);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#resources.disposeAsync();
  }

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
   * Authorizes a request with one operation, before its body is read, and sets `ctx.caller`. `relation` is
   * the relation of the operation; undefined for users. Throws or rejects with HttpProblem.
   */
  authorize(ctx: RequestContext, need: Permission, relation?: string): MaybePromise<void> {
    return whenReady(this.authenticate(ctx), () => this.authorizeOperation(ctx, need, relation));
  }

  /** Lets a request in; `authorizeOperation` judges its operations. Throws or rejects with HttpProblem. */
  authorizeAny(ctx: RequestContext): MaybePromise<void> {
    return whenReady(this.authenticate(ctx), () => this.requireCaller(ctx));
  }

  /** Identifies and counts a request; credentials may come later. Throws or rejects with HttpProblem. */
  authenticate(ctx: RequestContext): MaybePromise<void> {
    this.#refuseLate(undefined);
    const identified = this.#identify(ctx, ctx.headers.authorization);
    if (this.#options.rate === undefined) return identified;
    return whenReady(identified, () => this.#countRequest(ctx));
  }

  /**
   * Lets a request in with credentials sent after its head; by rules also one without any. Throws or rejects with
   * HttpProblem.
   */
  authenticateLate(
    ctx: RequestContext,
    authorization: string | undefined,
    isRuled: boolean,
  ): MaybePromise<void> {
    return whenReady(this.#identify(ctx, authorization, isRuled), () => {
      if (!isRuled) this.requireCaller(ctx);
    });
  }

  /**
   * Identifies and counts a request to relations with rules, also if no operation needs credentials: the rules judge it.
   * Throws or rejects with HttpProblem.
   */
  identify(ctx: RequestContext): MaybePromise<void> {
    this.#refuseLate(undefined);
    const identified = this.#identify(ctx, ctx.headers.authorization, true);
    if (this.#options.rate === undefined) return identified;
    return whenReady(identified, () => this.#countRequest(ctx));
  }

  /** The refusal of a request by a rule: one without credentials is asked for them. */
  refusalOf({ caller }: Pick<RequestContext, 'caller'>, refusal: HttpProblem): HttpProblem {
    return caller === undefined ? this.#options.challenges.missing : refusal;
  }

  /** Counts a further operation of a request that was counted already. Throws HttpProblem. */
  countOperation(ctx: RequestContext): void {
    const { rate } = this.#options;
    const refusal = rate?.refusalOf(rate.take(KnownCaller.keyOf(ctx), performance.now()));
    if (refusal !== undefined) throw refusal;
  }

  /** Authorizes one operation of an authenticated request. Throws HttpProblem. */
  authorizeOperation(ctx: RequestContext, need: Permission, relation?: string): void {
    this.#refuseLate(need);
    const { required, scopes, challenges } = this.#options;
    if (!isRequired(required, need)) return;
    const { caller } = ctx;
    if (caller === undefined) throw challenges.missing;
    if (!this.#options.authentication.isValid(caller)) throw challenges.invalid;
    const scope = relation === undefined ? scopes[need] : `${relation}:${need}`;
    if (!hasScope(caller, scope, relation && `*:${need}`)) throw challenges.lacksScope(scope);
  }

  /** Whether the caller of an authorized request also has a permission; unlike `authorize`, never throws. */
  allows({ caller }: Pick<RequestContext, 'caller'>, need: Permission, relation?: string): boolean {
    const { required, scopes, authentication } = this.#options;
    if (!isRequired(required, need)) return true;
    if (caller === undefined || !authentication.isValid(caller)) return false;
    if (relation === undefined) return caller.scopes.has(scopes[need]);
    return hasScope(caller, `${relation}:${need}`, `*:${need}`);
  }

  /** Whether a stream or WebSocket may continue, that is, its caller's credentials are still valid. */
  mayGoOn({ caller }: Pick<RequestContext, 'caller'>): boolean {
    return caller === undefined || this.#options.authentication.isValid(caller);
  }

  /** Reports a refusal that the reply's status does not show, as in a batch or on a WebSocket. */
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
    if (rate === undefined) return;
    const quota = rate.take(KnownCaller.keyOf(ctx), performance.now());
    ctx.addHeaders(rate.fieldsOf(quota));
    const refusal = rate.refusalOf(quota);
    if (refusal !== undefined) throw refusal;
  }

  /** Throws HttpProblem if all operations need credentials, and a request has none. */
  requireCaller(ctx: Pick<RequestContext, 'caller'>): void {
    if (ctx.caller !== undefined || this.#options.required !== 'all') return;
    throw this.#options.challenges.missing;
  }

  #identify(ctx: RequestContext, authorization: string | undefined, isRuled = false): MaybePromise<void> {
    if (authorization === undefined || (this.#options.required === 'none' && !isRuled)) return;
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

function hasScope({ scopes }: KnownCaller, scope: string, any: string | undefined): boolean {
  return scopes.has(scope) || (any !== undefined && scopes.has(any));
}

interface PolicyParts {
  /** Failed attempts of one address within a minute before it has to wait; 0 for no limit. */
  readonly maxFailures: number;
  readonly onLimit: (address: string) => void;
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

/** Creates the access policy. Throws UserNameError, EmptySecretError or PasswordHashError. */
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

/** Authenticates users with Basic; `scopes` are granted to each user in addition to the roles. */
interface BasicAccess {
  readonly authenticate: ReturnType<typeof authenticator>;
  readonly scopes: readonly string[];
}

interface AuthenticationOptions {
  readonly sources: readonly TokenProvider[];
  readonly basic: BasicAccess | undefined;
  readonly challenges: Challenges;
  readonly failures: FailureLimit;
  /** The wall clock, in milliseconds since the epoch. */
  readonly now: () => number;
}

/** Identifies the caller of a request by its Authorization header. */
class Authentication {
  readonly #options: AuthenticationOptions;
  readonly #users = new Map<string, KnownCaller>();
  /** Checks in progress by digest; requests with the same token share one. */
  readonly #checking = new Map<string, Promise<KnownCaller>>();

  constructor(options: AuthenticationOptions) {
    this.#options = options;
  }

  /**
   * The caller of an Authorization header; undefined without a header, or for a scheme that is not accepted.
   * Returns synchronously for a known token. Throws or rejects with HttpProblem for invalid credentials, or
   * with StoreUnavailableError.
   */
  callerOf(
    header: string | undefined,
    ctx: Pick<RequestContext, 'client'>,
  ): MaybePromise<KnownCaller | undefined> {
    if (header === undefined) return undefined;
    const token = bearerToken(header);
    if (token === undefined) return this.#user(header, ctx);
    const now = this.#options.now();
    const digest = tokenDigest(token);
    for (const source of this.#options.sources) {
      const caller = source.find(digest, now);
      if (caller === undefined) continue;
      caller.usedAt = now;
      return caller;
    }
    return this.#check(token, digest, attemptSource(ctx.client));
  }

  /** Whether the credentials of an authenticated caller are still valid. */
  isValid(caller: KnownCaller): boolean {
    return caller.isValidAt(this.#options.now());
  }

  /** Checks an unknown token. The failure limit applies only here, since a known token is not a guess. */
  #check(token: string, digest: string, address: string): MaybePromise<KnownCaller> {
    const { challenges, failures, sources } = this.#options;
    const refusal = failures.refusal(address);
    if (refusal !== undefined) throw refusal;
    if (!isToken(token)) {
      failures.fail(address);
      throw challenges.malformed;
    }
    const running = this.#checking.get(digest);
    if (running !== undefined) return running;
    // Tokens are too long to guess; counting failures bounds the cost of checking them.
    const found = whenReady(this.#ask(sources, 0, token, digest), (caller) => this.#settle(caller, address));
    if (!(found instanceof Promise)) return found;
    const checking = found.finally(() => this.#checking.delete(digest));
    this.#checking.set(digest, checking);
    return checking;
  }

  /** Asks the sources in order until one knows the token. */
  #ask(
    sources: readonly TokenProvider[],
    index: number,
    token: string,
    digest: string,
  ): MaybePromise<KnownCaller | 'stale' | undefined> {
    const source = sources[index];
    if (source === undefined) return undefined;
    return whenReady(
      source.check?.(token, digest),
      (found) => found ?? this.#ask(sources, index + 1, token, digest),
    );
  }

  #settle(found: KnownCaller | 'stale' | undefined, address: string): KnownCaller {
    const { challenges, failures, now } = this.#options;
    if (found === undefined) failures.fail(address);
    if (found === undefined || found === 'stale') throw challenges.invalid;
    found.usedAt = now();
    return found;
  }

  #user(header: string, { client }: Pick<RequestContext, 'client'>): MaybePromise<KnownCaller | undefined> {
    const { basic, challenges } = this.#options;
    if (basic === undefined || !/^basic /i.test(header)) return undefined;
    return whenReady(basic.authenticate(header, client), (verdict) => {
      if (verdict === undefined) throw challenges.invalid;
      if (verdict instanceof HttpProblem) throw verdict;
      const { name, roles } = verdict;
      // One object per user; configuration bounds the number of users.
      const known = this.#users.get(name);
      if (known !== undefined) return known;
      const caller = new KnownCaller({ kind: 'user', name, scopes: new Set([...roles, ...basic.scopes]) });
      this.#users.set(name, caller);
      return caller;
    });
  }
}

/** The syntax of a token (RFC 6750 2.1, b64token). */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;
const SCHEME = 'bearer ';
/** Maximum length of a token, in characters. */
const MAX_TOKEN = 8 * 1024;

/** The token of an Authorization header, unchecked; undefined for another scheme. */
export function bearerToken(header: string): string | undefined {
  if (header.slice(0, SCHEME.length).toLowerCase() !== SCHEME) return undefined;
  let start = SCHEME.length;
  while (header.charCodeAt(start) === 0x20) start++;
  return header.slice(start);
}

export function isToken(text: string): boolean {
  return text.length <= MAX_TOKEN && TOKEN.test(text);
}

/**
 * The key by which a token is looked up. The time of a lookup by the token itself would reveal how much of a
 * guess is right; a client cannot choose the first bytes of a digest.
 */
export function tokenDigest(token: string): string {
  return hash('sha256', token, 'hex');
}

const REALM = 'realm="portico"';
const BASIC = `Basic ${REALM}, charset="UTF-8"`;

/** Refusals of credentials, with challenges for Bearer (RFC 6750 3) and maybe Basic (RFC 7617). */
class Challenges {
  /** The request has no credentials. */
  readonly missing: HttpProblem;
  readonly invalid: HttpProblem;
  readonly malformed: HttpProblem;
  /** Whether passwords are accepted in addition to tokens. */
  readonly takesPasswords: boolean;
  readonly #basic: string;

  constructor(takesPasswords: boolean) {
    this.takesPasswords = takesPasswords;
    this.#basic = takesPasswords ? `, ${BASIC}` : '';
    const unauthorized = 'UNAUTHORIZED';
    this.missing = this.#refusal(401, unauthorized, 'This needs credentials', '');
    this.invalid = this.#refusal(401, unauthorized, 'The credentials are not valid', 'error="invalid_token"');
    this.malformed = this.#refusal(
      401,
      unauthorized,
      'The credentials cannot be read',
      'error="invalid_token"',
    );
  }

  /** The caller is authenticated but lacks a scope. */
  lacksScope(scope: string): HttpProblem {
    const message = `The credentials lack the scope ${scope}`;
    return this.#refusal(403, 'LACKS_SCOPE', message, `error="insufficient_scope", scope="${scope}"`);
  }

  #refusal(status: number, code: 'UNAUTHORIZED' | 'LACKS_SCOPE', message: string, error: string) {
    const challenge = `Bearer ${REALM}${error === '' ? '' : `, ${error}`}${this.#basic}`;
    return new HttpProblem(status, code, message, { headers: { 'www-authenticate': challenge } });
  }
}

/** Looks up and checks tokens. */
export interface TokenProvider {
  /** The caller of a known token, by the token's digest; never waits. */
  find(digest: string, now: number): KnownCaller | undefined;
  /**
   * Checks a token that `find` does not know. Returns undefined for an invalid token, and "stale" for a
   * genuine one that has expired, which does not count as a guess. Throws or rejects with HttpProblem or
   * StoreUnavailableError if the token cannot be checked now.
   */
  check?(token: string, digest: string): MaybePromise<KnownCaller | 'stale' | undefined>;
}
