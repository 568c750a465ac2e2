import { hash } from 'node:crypto';
import { HttpProblem, KnownCaller, type RequestContext } from '@portico/transport';
import { attemptSource } from '../core/addresses.ts';
import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import type { Authenticator, FailureLimit } from './basic.ts';

/** Authenticates users with Basic; `scopes` are granted to each user in addition to the roles. */
interface BasicAccess {
  readonly authenticate: Authenticator;
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
export class Authentication {
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

/** Whether a text has the syntax of a token. */
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

/**
 * Refusals of credentials, with challenges for Bearer (RFC 6750 3) and, if passwords are accepted, Basic (RFC
 * 7617).
 */
export class Challenges {
  /** The request has no credentials. */
  readonly missing: HttpProblem;
  /** The credentials are wrong, expired or revoked. */
  readonly invalid: HttpProblem;
  /** The credentials are malformed. */
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
