import {
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  type JWTVerifyResult,
  jwtVerify,
} from 'jose';
import { GenerationalCache } from '../../core/generational-cache.ts';
import { HttpProblem } from '../problem.ts';
import { KnownCaller } from './caller.ts';
import { scopesReader } from './jwt-scopes.ts';
import type { TokenSource } from './token-source.ts';

/** Signatures with public keys only: a shared secret would let everybody who checks tokens make some too. */
const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];
const MAX_CACHE_BYTES = 8 * 1024 * 1024;
/** What an entry takes beside its token, in bytes; its claims are about as long as the token. */
const ENTRY_BYTES = 600;
/** How long a token is known without another look at the keys, in milliseconds: one whose key was withdrawn is refused then. */
const KNOWN_FOR = 300_000;

/** What tokens of an identity provider have to be. */
export interface JwtRules {
  readonly issuer: string;
  readonly audience: readonly string[];
  /** The claim with the scopes, by name or JSON pointer. */
  readonly scopesClaim: string;
  /** In milliseconds. */
  readonly clockSkew: number;
}

export interface JwtTokensOptions extends JwtRules {
  /** The keys of the issuer. */
  readonly keys: JWTVerifyGetKey;
  readonly log: { warn(fields: object, message: string): void };
  /** What verified tokens may take, in bytes; default 8 MiB. */
  readonly maxCacheBytes?: number;
}

interface Verified {
  caller: KnownCaller;
  /** Until when it need not be verified again, in milliseconds since the epoch. */
  until: number;
}

/** Tokens that an identity provider has signed (RFC 7519). */
export class JwtTokens implements TokenSource {
  readonly #options: JwtTokensOptions;
  readonly #rules: JWTVerifyOptions;
  readonly #scopesOf: ReturnType<typeof scopesReader>;
  readonly #verified: GenerationalCache<Verified>;
  #isDown = false;

  constructor(options: JwtTokensOptions) {
    this.#options = options;
    this.#rules = {
      issuer: options.issuer,
      audience: [...options.audience],
      algorithms: ALGORITHMS,
      clockTolerance: options.clockSkew / 1_000,
      requiredClaims: ['exp'],
    };
    this.#scopesOf = scopesReader(options.scopesClaim);
    this.#verified = new GenerationalCache(options.maxCacheBytes ?? MAX_CACHE_BYTES);
  }

  /** The size of the tokens that are remembered, in bytes. */
  get bytes(): number {
    return this.#verified.bytes;
  }

  find(digest: string, now: number): KnownCaller | undefined {
    const known = this.#verified.get(digest);
    return known !== undefined && now < known.until && known.caller.isValidAt(now) ? known.caller : undefined;
  }

  async check(token: string, digest: string): Promise<KnownCaller | 'stale' | undefined> {
    if (token.split('.', 4).length !== 3) return undefined;
    try {
      const { payload } = await this.#verify(token);
      this.#isDown = false;
      return this.#remember(token, digest, payload);
    } catch (error) {
      return this.#judge(error);
    }
  }

  async #verify(token: string): Promise<JWTVerifyResult> {
    try {
      return await jwtVerify(token, this.#options.keys, this.#rules);
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
      // A token that does not name its key may be of any.
      for await (const key of error) {
        try {
          return await jwtVerify(token, key, this.#rules);
        } catch (cause) {
          if (!(cause instanceof errors.JWSSignatureVerificationFailed)) throw cause;
        }
      }
      throw new errors.JWSSignatureVerificationFailed();
    }
  }

  #remember(token: string, digest: string, claims: JWTPayload): KnownCaller {
    const now = Date.now();
    const expiresAt = (claims.exp ?? 0) * 1_000 + this.#options.clockSkew;
    const { name, id } = identityOf(claims, digest);
    const found = { kind: 'jwt', name, scopes: this.#scopesOf(claims), claims } as const;
    const caller = new KnownCaller(found, expiresAt, id);
    const until = Math.min(expiresAt, now + KNOWN_FOR);
    const known = this.#verified.get(digest);
    if (known === undefined) this.#verified.set(digest, { caller, until }, 2 * token.length + ENTRY_BYTES);
    else Object.assign(known, { caller, until });
    return caller;
  }

  /** What a failure says of a token. Throws HttpProblem when the keys could not be read. */
  #judge(error: unknown): 'stale' | undefined {
    // The issuer has signed it, but it has expired or is meant for somebody else. Of a key that is not known nobody can
    // tell that the issuer has it: such a token is a guess.
    if (error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed)
      return 'stale';
    const areKeysMissing = error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid;
    if (error instanceof errors.JOSEError && error.code !== 'ERR_JOSE_GENERIC' && !areKeysMissing) {
      return undefined;
    }
    if (!this.#isDown) this.#options.log.warn({ err: error }, 'keys of the identity provider not read');
    this.#isDown = true;
    throw new HttpProblem(503, 'NO_KEYS', 'The keys of the identity provider cannot be read now', {
      headers: { 'retry-after': '5' },
      cause: error,
    });
  }
}

/** Whom a token names: its subject, or else its client; one that names nobody is a caller by itself. */
function identityOf({ sub, client_id, azp }: JWTPayload, digest: string) {
  if (isName(sub)) return { name: sub, id: `jwt:${sub}` };
  const client = [client_id, azp].find(isName);
  return client === undefined
    ? { name: '', id: `jwt-token:${digest}` }
    : { name: client, id: `jwt-client:${client}` };
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
