import { tokenDigest } from './bearer-token.ts';
import { KnownCaller } from './caller.ts';
import type { TokenSource } from './token-source.ts';

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
export class FixedTokens implements TokenSource {
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
