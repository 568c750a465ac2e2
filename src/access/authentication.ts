import { hash } from 'node:crypto';
import { HttpProblem, KnownCaller, type RequestContext } from '@portico/transport';
import { attemptSource } from '../core/addresses.ts';
import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import type { Authenticator, FailureLimit } from './basic.ts';

/** Users who may come in by Basic, and the scopes that each of them has beside their roles. */
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

/** Tells who makes a request by its Authorization header. */
export class Authentication {
  readonly #options: AuthenticationOptions;
  readonly #users = new Map<string, KnownCaller>();
  /** Checks that are under way: requests with the same token share one. */
  readonly #checking = new Map<string, Promise<KnownCaller>>();

  constructor(options: AuthenticationOptions) {
    this.#options = options;
  }

  /**
   * The caller of an Authorization header; undefined without one, or for a scheme that is not taken. A known token needs no
   * promise. Throws or rejects with HttpProblem for credentials that are not good, StoreUnavailableError.
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

  /** Whether credentials that were good still are. */
  isValid(caller: KnownCaller): boolean {
    return caller.isValidAt(this.#options.now());
  }

  /** Right tokens cannot be guessed, so known ones come in whatever their address has tried. */
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
    // Guesses are hopeless; counting them bounds what they cost.
    const found = whenReady(this.#ask(sources, 0, token, digest), (caller) => this.#settle(caller, address));
    if (!(found instanceof Promise)) return found;
    const checking = found.finally(() => this.#checking.delete(digest));
    this.#checking.set(digest, checking);
    return checking;
  }

  /** Asks one source after the other, each only when those before do not know the token. */
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
      // One object for each user, of whom there are as many as were configured.
      const known = this.#users.get(name);
      if (known !== undefined) return known;
      const caller = new KnownCaller({ kind: 'user', name, scopes: new Set([...roles, ...basic.scopes]) });
      this.#users.set(name, caller);
      return caller;
    });
  }
}

/** What a token may consist of (RFC 6750 2.1, b64token). */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;
const SCHEME = 'bearer ';
/** A longer token is none of ours, in characters. */
const MAX_TOKEN = 8 * 1024;

/** The token of an Authorization header, not looked at yet; undefined for another scheme. */
export function bearerToken(header: string): string | undefined {
  if (header.slice(0, SCHEME.length).toLowerCase() !== SCHEME) return undefined;
  let start = SCHEME.length;
  while (header.charCodeAt(start) === 0x20) start++;
  return header.slice(start);
}

/** Whether a text can be a token at all. */
export function isToken(text: string): boolean {
  return text.length <= MAX_TOKEN && TOKEN.test(text);
}

/**
 * What a token is looked up by. A look-up by the token itself would take longer the more of it is right; nobody can choose
 * what the digest begins with.
 */
export function tokenDigest(token: string): string {
  return hash('sha256', token, 'hex');
}

const REALM = 'realm="portico"';
const BASIC = `Basic ${REALM}, charset="UTF-8"`;

/** The refusals of credentials, with the challenges of RFC 6750 3 (Bearer) and of RFC 7617 where passwords are taken too. */
export class Challenges {
  /** The request has no credentials. */
  readonly missing: HttpProblem;
  /** They are wrong, have expired or are revoked. */
  readonly invalid: HttpProblem;
  /** They cannot be read. */
  readonly malformed: HttpProblem;
  /** Whether passwords are taken beside tokens. */
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

  /** The caller is known and lacks a scope. */
  lacksScope(scope: string): HttpProblem {
    const message = `The credentials lack the scope ${scope}`;
    return this.#refusal(403, 'LACKS_SCOPE', message, `error="insufficient_scope", scope="${scope}"`);
  }

  #refusal(status: number, code: 'UNAUTHORIZED' | 'LACKS_SCOPE', message: string, error: string) {
    const challenge = `Bearer ${REALM}${error === '' ? '' : `, ${error}`}${this.#basic}`;
    return new HttpProblem(status, code, message, { headers: { 'www-authenticate': challenge } });
  }
}

/** Where tokens are known from. */
export interface TokenProvider {
  /** The caller of a token that is known, by its digest: without waiting for anything. */
  find(digest: string, now: number): KnownCaller | undefined;
  /**
   * Looks again for a token that `find` did not know; undefined for one that is not good. Throws or rejects with
   * HttpProblem or StoreUnavailableError when that cannot be told now. "stale" is a genuine token that has expired, which is nobody's guess.
   */
  check?(token: string, digest: string): MaybePromise<KnownCaller | 'stale' | undefined>;
}
