import { type MaybePromise, whenReady } from '../../core/maybe-promise.ts';
import { attemptSource } from '../auth/attempt-limit.ts';
import type { Authenticator } from '../auth/authenticator.ts';
import type { FailureLimit } from '../auth/failure-limit.ts';
import type { Exchange } from '../endpoint.ts';
import { HttpProblem } from '../problem.ts';
import { bearerToken, isToken, tokenDigest } from './bearer-token.ts';
import { KnownCaller } from './caller.ts';
import type { Challenges } from './challenges.ts';
import type { TokenSource } from './token-source.ts';

/** Users who may come in by Basic, and the scopes that each of them has beside their roles. */
export interface BasicAccess {
  readonly authenticate: Authenticator;
  readonly scopes: readonly string[];
}

export interface AuthenticationOptions {
  readonly sources: readonly TokenSource[];
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
    exchange: Pick<Exchange, 'client'>,
  ): MaybePromise<KnownCaller | undefined> {
    if (header === undefined) return undefined;
    const token = bearerToken(header);
    if (token === undefined) return this.#user(header, exchange);
    const now = this.#options.now();
    const digest = tokenDigest(token);
    for (const source of this.#options.sources) {
      const caller = source.find(digest, now);
      if (caller === undefined) continue;
      caller.usedAt = now;
      return caller;
    }
    return this.#check(token, digest, attemptSource(exchange.client));
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
    sources: readonly TokenSource[],
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

  #user(header: string, { client }: Pick<Exchange, 'client'>): MaybePromise<KnownCaller | undefined> {
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
