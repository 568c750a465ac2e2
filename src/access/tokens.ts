import { KnownCaller } from '@portico/transport';
import { StoreUnavailableError } from '../core/errors.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';
import { type TokenProvider, tokenDigest } from './authentication.ts';

/** A token as it is configured, its secrets read. */
export interface FixedToken {
  readonly name: string;
  /** Any of them is the token, so that one can be replaced. */
  readonly secrets: readonly string[];
  readonly scopes: ReadonlySet<string>;
  /** In milliseconds since the epoch; default never. */
  readonly expiresAt?: number | undefined;
}

/** The tokens of the configuration. */
export class FixedTokens implements TokenProvider {
  #byDigest: ReadonlyMap<string, KnownCaller> = new Map();
  #bySecret: ReadonlyMap<string, KnownCaller> = new Map();

  constructor(tokens: readonly FixedToken[]) {
    this.replace(tokens);
  }

  /** Takes other secrets for the tokens; callers whose secret is gone are revoked. */
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

  /** An expired token is genuine. */
  check(_token: string, digest: string): 'stale' | undefined {
    return this.#byDigest.has(digest) ? 'stale' : undefined;
  }
}

/** What every token of the database begins with, by which scanners of sources find one that was committed. */
export const TOKEN_PREFIX = 'portico_';

/** The tokens in the database, as far as a door needs them. Fails with StoreUnavailableError. */
export interface TokenStore {
  /** Those that are not revoked. */
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
  /** How often the tokens are read, in milliseconds: a revoked one is refused within that; default 5 s. */
  readonly interval?: number;
  /** How often last uses are written, in milliseconds; default a minute. */
  readonly noteInterval?: number;
}

/** Without an answer of the database for so many intervals no token of it is good: it may be revoked. */
const MAX_MISSED = 3;

/** The tokens in the database: all of them in memory, read again and again. */
export class StoredTokens implements TokenProvider, AsyncDisposable {
  readonly #store: TokenStore;
  readonly #log: StoredTokensOptions['log'];
  readonly #timers: readonly NodeJS.Timeout[];
  #callers: ReadonlyMap<string, KnownCaller> = new Map();
  #running: Promise<void> | undefined;
  #queued: Promise<void> | undefined;
  /** Reads since the last that succeeded; the first is still to come. */
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

  /** Reads the tokens again: the token may be new. */
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

  /** A read that begins from now on; all that wait for one share it. */
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

  /** Writes the last uses since the last time, off the path of requests. */
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
