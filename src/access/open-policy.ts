import { KnownCaller } from '@portico/transport';
import type { InferOutput } from 'valibot';
import { ConfigError } from '../config/load.ts';
import { knownScopes, RATE, unknownScopes } from '../config/options/access.ts';
import { defaultsOf } from '../config/options/options.ts';
import { readObject, sluggedOf } from '../config/schema/fields.ts';
import { resolveSecret, type SecretResolver, watchedFile } from '../config/secrets.ts';
import { StoreUnavailableError } from '../core/errors.ts';
import type { MaybePromise } from '../core/scheduler.ts';
import type { OnRefused } from './audit.ts';
import type { BasicUser } from './basic.ts';
import { type ApiTokensConfig, apiTokenSchema } from './config.ts';
import { type AccessPolicy, createAccessPolicy, isToken, type TokenProvider, tokenDigest } from './policy.ts';
import { Load, type RateRule } from './rates.ts';

type Required = AccessPolicy['rules']['required'];

const DEFAULTS = defaultsOf('api');

/** Configures access to REST and GraphQL. */
export interface ApiOptions {
  /** Operations that need credentials; default none. */
  readonly required?: Required;
  /** Tokens by name. */
  readonly tokens?: ApiTokensConfig | undefined;
  /** Scope that reading needs; default `users:read`. */
  readonly readScope?: string;
  /** Scope that writing needs; default `users:write`. */
  readonly writeScope?: string;
  /** Additional scopes that tokens may have; default none. */
  readonly scopes?: readonly string[];
  /** Scopes that each of `users` has with Basic; default none, which disables Basic. */
  readonly basic?: readonly string[];
  readonly users?: readonly BasicUser[];
  /** Failed attempts of one address within a minute before it has to wait; default 10, 0 for no limit. */
  readonly maxFailures?: number;
  /** Maximum rate of each client, like `100/s`; default no limit. */
  readonly rate?: string | undefined;
  /** Requests that a client may send at once after a pause; default the number in `rate`. */
  readonly burst?: number;
  /** Refuse requests while the event loop delay exceeds this, in milliseconds; default 0, no limit. */
  readonly maxLoopDelay?: number;
  /** Refuse writes while a write has waited longer than this, in milliseconds; default 0, no limit. */
  readonly maxWriteDelay?: number;
  /** Returns the time that a write has waited, in milliseconds: `database.writeDelay`. */
  readonly writeDelay?: (() => number) | undefined;
  /** Tokens of an identity provider; default none. */
  readonly jwt?: JwtOptions;
  /** Tokens of a database: `database.apiTokens`; default none. */
  readonly stored?: TokenStore | undefined;
}

interface JwtOptions {
  readonly issuer?: string | undefined;
  /** Accepted audiences; a token must have at least one of them. */
  readonly audience?: string | readonly string[] | undefined;
  /** The provider's keys: the URL or the path of a JSON Web Key Set. */
  readonly jwks?: string | undefined;
  /** The claim with the scopes, by name or JSON pointer; default `scope`. */
  readonly scopesClaim?: string;
  /** Tolerated clock difference, in milliseconds; default 30,000. */
  readonly clockSkew?: number;
}

interface PolicySetting {
  /** Whether rules ask who the caller is, also if no operation needs credentials; default false. */
  readonly hasRules?: boolean;
  readonly resolve: SecretResolver;
  /** The name of the configuration in messages. */
  readonly name: string;
  readonly log: {
    info(message: string): void;
    warn(fields: object, message: string): void;
    error(fields: object, message: string): void;
  };
  /** Receives new secrets of tokens before a log entry can contain them. */
  readonly onSecrets?: ((secrets: readonly string[]) => void) | undefined;
  /** Called for each refusal that the status of the reply does not show. */
  readonly onRefused?: OnRefused | undefined;
}

/** Opens the access policy that the options ask for; undefined when they ask for none. Rejects with ConfigError. */
export async function openAccessPolicy(
  options: ApiOptions,
  setting: PolicySetting,
): Promise<AccessPolicy | undefined> {
  const { required = DEFAULTS.required, rate, burst = DEFAULTS.burst } = options;
  const load = loadOf(options);
  const { onRefused, hasRules = false } = setting;
  const asksForCallers = required !== 'none' || hasRules;
  if (!asksForCallers && rate === undefined && load === undefined) return undefined;
  if (rate !== undefined && !RATE.test(rate)) {
    throw new ConfigError([`${setting.name}: api.rate must be a rate like 100/s`]);
  }
  const wrong = unknownScopes(`${setting.name}: api.basic`, options.basic ?? [], knownScopes(options));
  if (wrong.length > 0) throw new ConfigError(wrong);
  // Reading it creates a logger.
  const { log } = setting;
  await using opening = new AsyncDisposableStack();
  if (load !== undefined) opening.use(load);
  const sources = asksForCallers ? await openSources(options, setting, opening) : [];
  const policy = createAccessPolicy({
    required,
    scopes: {
      read: options.readScope ?? DEFAULTS.readScope,
      write: options.writeScope ?? DEFAULTS.writeScope,
    },
    sources,
    users: options.users ?? [],
    basicScopes: options.basic ?? DEFAULTS.basic,
    maxFailures: options.maxFailures ?? DEFAULTS.maxFailures,
    onLimit: (address) => log.warn({ address }, 'too many wrong credentials for the API'),
    load,
    rate: rate === undefined ? undefined : rateRule(rate, burst),
    onRefused,
  });
  policy.use(opening.move());
  return policy;
}

/** Opens the token providers, as resources of `opening`. */
async function openSources(
  options: ApiOptions,
  setting: PolicySetting,
  opening: AsyncDisposableStack,
): Promise<readonly TokenProvider[]> {
  const { tokens, stored, jwt = {} } = options;
  const sources: TokenProvider[] = [opening.use(liveTokens(tokens, setting, knownScopes(options))).source];
  if (stored !== undefined) sources.push(opening.use(new StoredTokens(stored, setting)));
  if (hasProvider(jwt)) {
    // Loaded only if it is configured.
    const { openJwt } = await import('./jwt.ts');
    const { source, keys } = openJwt(jwt, setting);
    opening.use(keys);
    sources.push(source);
  }
  return sources;
}

function loadOf({
  maxLoopDelay = DEFAULTS.maxLoopDelay,
  maxWriteDelay = DEFAULTS.maxWriteDelay,
  writeDelay,
}: ApiOptions): Load | undefined {
  if (maxLoopDelay === 0 && maxWriteDelay === 0) return undefined;
  return new Load({ maxLoopDelay, maxWriteDelay, writeDelay: writeDelay ?? (() => 0) });
}

function hasProvider({ issuer, audience, jwks }: JwtOptions): boolean {
  return issuer !== undefined || audience !== undefined || jwks !== undefined;
}

/** The configured tokens, reloaded when a file with a secret changes. */
interface LiveTokens extends Disposable {
  readonly source: FixedTokens;
}

/** Reads `api.tokens`, again when a file changes; a failed reload keeps the old ones. Throws ConfigError. */
function liveTokens(
  value: unknown,
  { resolve, name, log, onSecrets }: Pick<PolicySetting, 'resolve' | 'name' | 'log' | 'onSecrets'>,
  scopes: readonly string[],
): LiveTokens {
  const read = (): ReadTokens => {
    const problems: string[] = [];
    const found = readApiTokens(value, { path: `${name}: api.tokens`, resolve, scopes }, problems);
    if (problems.length > 0) throw new ConfigError(problems);
    return found;
  };
  const textOf = ({ tokens }: ReadTokens) => JSON.stringify(tokens.map(({ secrets }) => secrets));
  const take = (found: ReadTokens) => {
    onSecrets?.(found.tokens.flatMap(({ secrets }) => secrets));
    return found.tokens;
  };

  const first = read();
  const source = new FixedTokens(take(first));
  let current = textOf(first);
  let problem: string | undefined;
  const readAgain = () => {
    try {
      const found = read();
      problem = undefined;
      if (textOf(found) === current) return;
      current = textOf(found);
      source.replace(take(found));
      log.info('tokens of the API reloaded');
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      if (error.message === problem) return;
      problem = error.message;
      log.error({ problem }, 'changed tokens of the API unusable, old ones kept');
    }
  };
  const watched = new DisposableStack();
  for (const file of new Set(first.files)) {
    watched.use(watchedFile(file, readAgain));
  }
  return { source, [Symbol.dispose]: () => watched.dispose() };
}

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };

/** The rule of a rate such as `100/s`; a burst of 0 means the number in the rate. */
function rateRule(rate: string, burst: number): RateRule {
  const [count = '', unit = ''] = rate.split('/');
  const limit = Number(count);
  return { limit, windowMs: UNITS[unit] ?? 1_000, burst: burst === 0 ? limit : burst };
}

/** Minimum length of a secret, in characters; shorter ones could be guessed. */
const MIN_SECRET = 16;

/** The configured tokens, and the files that their secrets come from. */
interface ReadTokens {
  readonly tokens: readonly FixedToken[];
  /** Absolute paths. */
  readonly files: readonly string[];
}

/** The context in which tokens are read. */
interface TokenReading {
  readonly path: string;
  readonly resolve: SecretResolver;
  /** The known scopes; undefined accepts any scope. */
  readonly scopes: readonly string[] | undefined;
}

/** Reads `api.tokens`. Appends one line per problem to `problems`, never quoting a secret. */
export function readApiTokens(
  value: unknown,
  { path, resolve, scopes: known }: TokenReading,
  problems: string[],
): ReadTokens {
  const files: string[] = [];
  const owners = new Map<string, string>();
  const tokens = sluggedOf({ value, path }, 'tokens', problems).flatMap((entry): FixedToken[] => {
    const token = readObject(apiTokenSchema, entry, problems);
    if (token === undefined) return [];
    const { scopes, expires } = token;
    if (known !== undefined) problems.push(...unknownScopes(`${entry.path}.scopes`, scopes, known));
    const secrets = secretsOf(token, `${entry.path}.secret`, { resolve, problems, files });
    for (const secret of secrets) {
      const owner = owners.get(secret);
      if (owner !== undefined)
        problems.push(`${entry.path} has the same secret as ${owner}; give each its own`);
      owners.set(secret, entry.path);
    }
    return [{ name: entry.name, secrets, scopes: new Set(scopes), expiresAt: expires }];
  });
  return { tokens, files };
}

function secretsOf(
  { secret }: InferOutput<typeof apiTokenSchema>,
  path: string,
  { resolve, problems, files }: { resolve: SecretResolver; problems: string[]; files: string[] },
): readonly string[] {
  const several = Array.isArray(secret);
  return [secret].flat().flatMap((one, index) => {
    const found = resolveSecret(one, several ? `${path}[${index}]` : path, resolve);
    if ('problem' in found) {
      problems.push(found.problem);
      return [];
    }
    if (found.file !== undefined) files.push(found.file);
    const problem = problemOf(found.text, found.name);
    if (problem !== undefined) problems.push(problem);
    return problem === undefined ? found.text : [];
  });
}

function problemOf(text: string, name: string): string | undefined {
  if (text.length >= MIN_SECRET && isToken(text)) return undefined;
  return `${name} must have at least ${MIN_SECRET} letters, digits and -._~+/ ("=" at its end), as Bearer tokens have`;
}

interface FixedToken {
  readonly name: string;
  /** Each of them is accepted, so that a secret can be replaced without downtime. */
  readonly secrets: readonly string[];
  readonly scopes: ReadonlySet<string>;
  /** Expiry, in milliseconds since the epoch; default never. */
  readonly expiresAt?: number | undefined;
}

class FixedTokens implements TokenProvider {
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

/** The prefix of stored tokens, by which secret scanners find a committed one. */
export const TOKEN_PREFIX = 'portico_';

interface TokenStore {
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
  /** Interval of reading the tokens, after which a revoked one is refused, in milliseconds; default 5,000. */
  readonly interval?: number;
  /** How often last uses are written, in milliseconds; default 60,000. */
  readonly noteInterval?: number;
}

/** After this many intervals without an answer, stored tokens are refused: they may be revoked. */
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
