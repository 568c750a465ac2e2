import { KnownCaller } from '@portico/transport';
import { StoreUnavailableError } from '../core/errors.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';
import { type TokenProvider, tokenDigest } from './authentication.ts';

/** A configured token with its secrets. */
export interface FixedToken {
  readonly name: string;
  /** Each of them is accepted, so that a secret can be replaced without downtime. */
  readonly secrets: readonly string[];
  readonly scopes: ReadonlySet<string>;
  /** Expiry, in milliseconds since the epoch; default never. */
  readonly expiresAt?: number | undefined;
}

/** Provides the configured tokens. */
export class FixedTokens implements TokenProvider {
  #byDigest: ReadonlyMap<string, KnownCaller> = new Map();
  #bySecret: ReadonlyMap<string, KnownCaller> = new Map();

  constructor(tokens: readonly FixedToken[]) {
    this.replace(tokens);
  }

  /** Replaces the tokens; revokes callers whose secret was removed. */
  replace(tokens: readonly FixedToken[]): void {
    const before = this.#bySecret;
    const bySecret = new Map<string, KnownCaller>();
    for (const { name, secrets, scopes, expiresAt } of tokens) {
      for (const secret of secrets) {
        bySecret.set(
          secret,
          before.get(secret) ?? new KnownCaller({ kind: 'token', name, scopes }, expiresAt),
        );
      }
    }
    for (const [secret, caller] of before) if (!bySecret.has(secret)) caller.revoke();
    this.#bySecret = bySecret;
    this.#byDigest = new Map(Array.from(bySecret, ([secret, caller]) => [tokenDigest(secret), caller]));
  }

  find(digest: string, now: number): KnownCaller | undefined {
    const caller = this.#byDigest.get(digest);
    return caller?.isValidAt(now) === true ? caller : undefined;
  }

  /** A configured token that `find` refused has expired. */
  check(_token: string, digest: string): 'stale' | undefined {
    return this.#byDigest.has(digest) ? 'stale' : undefined;
  }
}

/**
 * The prefix of every stored token; secret scanners use it to find a token that was committed to a
 * repository.
 */
export const TOKEN_PREFIX = 'portico_';

/** The part of the token store that a door needs. Fails with StoreUnavailableError. */
export interface TokenStore {
  /** The tokens that are not revoked. */
  live(): MaybePromise<
    readonly {
      readonly name: string;
      readonly digest: string;
      readonly scopes: readonly string[];
      readonly expiresAt: number | null;
    }[]
  >;
  noteUses(uses: ReadonlyMap<string, number>): Promise<void>;
}

interface StoredTokensOptions {
  readonly log: { warn(fields: object, message: string): void };
  /**
   * How often the tokens are read, and so how soon a revoked one is refused, in milliseconds; default 5,000.
   */
  readonly interval?: number;
  /** How often last uses are written, in milliseconds; default 60,000. */
  readonly noteInterval?: number;
}

/**
 * After this many intervals without an answer of the database, stored tokens are refused: they may be
 * revoked.
 */
const MAX_MISSED = 3;

/** Provides the tokens in the database. Holds all of them in memory and reads them periodically. */
export class StoredTokens implements TokenProvider, AsyncDisposable {
  readonly #store: TokenStore;
  readonly #log: StoredTokensOptions['log'];
  readonly #timers: readonly NodeJS.Timeout[];
  #callers: ReadonlyMap<string, KnownCaller> = new Map();
  #running: Promise<void> | undefined;
  #queued: Promise<void> | undefined;
  /** Reads since the last successful one; starts at the maximum, since none has succeeded yet. */
  #missed = MAX_MISSED;
  #notedUntil = 0;

  constructor(store: TokenStore, { log, interval = 5_000, noteInterval = 60_000 }: StoredTokensOptions) {
    this.#store = store;
    this.#log = log;
    const every = (ms: number, work: () => Promise<void>) => setInterval(() => void work(), ms).unref();
    this.#timers = [every(interval, () => this.#poll()), every(noteInterval, () => this.#noteUses())];
    void this.#poll();
  }

  find(digest: string, now: number): KnownCaller | undefined {
    if (this.#missed >= MAX_MISSED) return undefined;
    const caller = this.#callers.get(digest);
    return caller?.isValidAt(now) === true ? caller : undefined;
  }

  /** Reads the tokens again, since the token may be new. */
  async check(token: string, digest: string): Promise<KnownCaller | 'stale' | undefined> {
    if (!token.startsWith(TOKEN_PREFIX)) return undefined;
    if (!this.#callers.has(digest) || this.#missed >= MAX_MISSED) await this.#readAnew();
    const caller = this.#callers.get(digest);
    return caller?.isValidAt(Date.now()) === false ? 'stale' : caller;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.#running?.catch(() => {});
    await this.#noteUses();
  }

  async #poll(): Promise<void> {
    try {
      await (this.#running ?? this.#read());
    } catch (error) {
      this.#log.warn({ err: error }, 'tokens of the database not read');
    }
  }

  /** Resolves after a read that begins now or later; concurrent callers share one. */
  #readAnew(): Promise<void> {
    if (this.#running === undefined) return this.#read();
    this.#queued ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#queued = undefined;
        return this.#read();
      });
    return this.#queued;
  }

  #read(): Promise<void> {
    const running = this.#readNow().finally(() => {
      this.#running = undefined;
    });
    this.#running = running;
    return running;
  }

  async #readNow(): Promise<void> {
    this.#missed++;
    const before = this.#callers;
    const tokens = await this.#store.live();
    this.#missed = 0;
    this.#callers = new Map(
      tokens.map(({ name, digest, scopes, expiresAt }) => [
        digest,
        before.get(digest) ??
          new KnownCaller({ kind: 'token', name, scopes: new Set(scopes) }, expiresAt ?? undefined),
      ]),
    );
    for (const [digest, caller] of before) if (!this.#callers.has(digest)) caller.revoke();
  }

  /** Writes the tokens' last uses since the previous call, off the path of requests. */
  async #noteUses(): Promise<void> {
    const uses = new Map(
      Array.from(this.#callers, ([digest, { usedAt }]) => [digest, usedAt] as const).filter(
        ([, usedAt]) => usedAt > this.#notedUntil,
      ),
    );
    if (uses.size === 0) return;
    try {
      await this.#store.noteUses(uses);
      this.#notedUntil = Math.max(...uses.values());
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      this.#log.warn({ err: error }, 'last uses of tokens not stored');
    }
  }
}
