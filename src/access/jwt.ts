import { HttpProblem, KnownCaller } from '@portico/transport';
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  type JWTVerifyResult,
  jwtVerify,
} from 'jose';
import { ConfigError } from '../config/load.ts';
import { defaultsOf } from '../config/options/options.ts';
import { watchedFile } from '../config/secrets.ts';
import { describeError } from '../core/errors.ts';
import { GenerationalCache } from '../core/generational-cache.ts';
import { type JsonPointer, parsePointer, valueAt } from '../core/json.ts';
import type { ApiOptions, openAccessPolicy } from './open-policy.ts';
import type { TokenProvider } from './policy.ts';

type PolicySetting = Parameters<typeof openAccessPolicy>[1];

type JwtOptions = NonNullable<ApiOptions['jwt']>;

/** Opens the token provider of an identity provider, and its keys. Throws ConfigError. */
export function openJwt(options: JwtOptions, setting: PolicySetting) {
  const { issuer, audience, jwks } = options;
  if (issuer === undefined || audience === undefined || jwks === undefined) {
    throw new ConfigError([`${setting.name}: api.jwt needs issuer, audience and jwks`]);
  }
  const defaults = defaultsOf('api.jwt');
  const keys = jwtKeys(jwks, setting);
  const source = new JwtTokens({
    issuer,
    audience: [audience].flat(),
    scopesClaim: options.scopesClaim ?? defaults.scopesClaim,
    clockSkew: options.clockSkew ?? defaults.clockSkew,
    keys: keys.get,
    log: setting.log,
  });
  return { source, keys };
}

/** Timeout for fetching the keys, in milliseconds. */
const TIMEOUT = 5_000;
/** Minimum time between two fetches caused by tokens with an unknown key id, in milliseconds. */
const COOLDOWN = 30_000;
/** Maximum age of fetched keys, in milliseconds; limits how long a withdrawn key is accepted. */
const MAX_AGE = 600_000;

/** The keys of an identity provider. Disposing of it stops watching their file. */
interface JwtKeys extends Disposable {
  readonly get: JWTVerifyGetKey;
}

/** The keys at a URL or in a file, which is watched for changes. Throws ConfigError. */
function jwtKeys(place: string, { resolve, log, name }: PolicySetting): JwtKeys {
  const what = `${name}: api.jwt.jwks`;
  if (/^https?:\/\//i.test(place)) {
    const url = URL.parse(place);
    if (url === null) throw new ConfigError([`${what} is not a valid URL`]);
    const get = createRemoteJWKSet(url, {
      timeoutDuration: TIMEOUT,
      cooldownDuration: COOLDOWN,
      cacheMaxAge: MAX_AGE,
    });
    return { get, [Symbol.dispose]() {} };
  }
  const read = () => {
    const found = resolve.file(what, place);
    if ('problem' in found) throw new ConfigError([found.problem]);
    return { text: found.text, path: found.path, keys: keysOf(found.text, what) };
  };
  let current = read();
  const readAgain = () => {
    try {
      const next = read();
      if (next.text === current.text) return;
      current = next;
      log.info('keys of the identity provider reloaded');
    } catch (error) {
      log.error(
        { problem: describeError(error) },
        'changed keys of the identity provider unusable, old ones kept',
      );
    }
  };
  const watched = current.path === undefined ? undefined : watchedFile(current.path, readAgain);
  return {
    get: (header, token) => current.keys(header, token),
    [Symbol.dispose]: () => watched?.[Symbol.dispose](),
  };
}

function keysOf(text: string, what: string): JWTVerifyGetKey {
  try {
    return createLocalJWKSet(JSON.parse(text) as JSONWebKeySet);
  } catch {
    throw new ConfigError([`${what} names a file that is not a JSON Web Key Set`]);
  }
}

type ReadScopes = (claims: Readonly<Record<string, unknown>>) => ReadonlySet<string>;

/**
 * Creates a reader of scopes from a claim, given by name or JSON pointer. The claim is a text with the scopes
 * separated by spaces (RFC 8693), or a list of texts.
 */
export function scopesReader(claim: string): ReadScopes {
  const pointer: JsonPointer = claim.startsWith('/') ? (parsePointer(claim) ?? [claim]) : [claim];
  return (claims) => {
    const given = [valueAt(claims, pointer)].flat();
    const texts = given.filter((each) => typeof each === 'string');
    return new Set(texts.flatMap((each) => each.split(' ')).filter((scope) => scope !== ''));
  };
}

/** Public-key algorithms only: whoever verifies with a shared secret could also issue tokens. */
const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];
const MAX_CACHE_BYTES = 8 * 1024 * 1024;
/** Estimated size of a cache entry without its token, in bytes; its claims are about as long as the token. */
const ENTRY_BYTES = 600;
/** How long a verified token is cached, and so accepted after its key is withdrawn, in milliseconds. */
const KNOWN_FOR = 300_000;

/** Requirements on the tokens of an identity provider. */
interface JwtRules {
  readonly issuer: string;
  readonly audience: readonly string[];
  /** The claim with the scopes, by name or JSON pointer. */
  readonly scopesClaim: string;
  /** Tolerated clock difference, in milliseconds. */
  readonly clockSkew: number;
}

interface JwtTokensOptions extends JwtRules {
  /** The keys of the issuer. */
  readonly keys: JWTVerifyGetKey;
  readonly log: { warn(fields: object, message: string): void };
  /** Maximum size of the cache of verified tokens, in bytes; default 8 MiB. */
  readonly maxCacheBytes?: number;
}

interface Verified {
  caller: KnownCaller;
  /** When the token has to be verified again, in milliseconds since the epoch. */
  until: number;
}

/** Verifies tokens signed by an identity provider (RFC 7519), and caches the results. */
export class JwtTokens implements TokenProvider {
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
      // A token without a key id may have been signed with any of the keys.
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

  /** The verdict on a token that failed verification. Throws HttpProblem if the keys could not be read. */
  #judge(error: unknown): 'stale' | undefined {
    // The issuer signed the token, but it has expired or is for another audience. A token with an unknown key
    // may come from anyone, so it counts as a guess.
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

/** The identity in a token: its subject, else its client. A token without either is a separate caller. */
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
