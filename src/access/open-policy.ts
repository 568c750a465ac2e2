import type { OnRefused } from '@portico/transport';
import type { InferOutput } from 'valibot';
import { ConfigError } from '../config/load.ts';
import { apiOptions, knownScopes, RATE, unknownScopes } from '../config/options/access.ts';
import { type ApiTokensConfig, apiTokenSchema } from '../config/schema/code.ts';
import { readObject, sluggedOf } from '../config/schema/fields.ts';
import { watchedFile } from '../config/secret-file.ts';
import { resolveSecret, type SecretResolver } from '../config/secrets.ts';
import { isToken, type TokenProvider } from './authentication.ts';
import type { BasicUser } from './basic.ts';
import type { Required } from './permission.ts';
import { type AccessPolicy, createAccessPolicy } from './policy.ts';
import { Load, type RateRule } from './rates.ts';
import { type FixedToken, FixedTokens, StoredTokens, type TokenStore } from './tokens.ts';

/** Access to REST and GraphQL, as the configuration has it. */
export interface ApiOptions {
  /** Operations that need credentials; default none. */
  readonly required?: Required;
  /** Tokens by name. */
  readonly tokens?: ApiTokensConfig | undefined;
  /** Default `users:read`. */
  readonly readScope?: string;
  /** Default `users:write`. */
  readonly writeScope?: string;
  /** Scopes of your own, which tokens may have beside these two; default none. */
  readonly scopes?: readonly string[];
  /** Scopes of each of `users`, by Basic; default none, and no Basic. */
  readonly basic?: readonly string[];
  readonly users?: readonly BasicUser[];
  /** Wrong credentials from one address within a minute; default 10, 0 for no limit. */
  readonly maxFailures?: number;
  /** Requests of each client, like `100/s`; default any number. */
  readonly rate?: string | undefined;
  /** How many may come at once after a pause; default as many as the rate has in its unit. */
  readonly burst?: number;
  /** Delay of the event loop above which requests are refused, in milliseconds; default 0, no limit. */
  readonly maxLoopDelay?: number;
  /** Time that a write has waited above which further ones are refused, in milliseconds; default 0, no limit. */
  readonly maxWriteDelay?: number;
  /** Tells that time: `database.writeDelay`. */
  readonly writeDelay?: (() => number) | undefined;
  /** Tokens of an identity provider; default none. */
  readonly jwt?: JwtOptions;
  /** Tokens of a database: `database.apiTokens`; default none. */
  readonly stored?: TokenStore | undefined;
}

/** The tokens of an identity provider that are accepted. */
export interface JwtOptions {
  readonly issuer?: string | undefined;
  /** One of them has to be the token's. */
  readonly audience?: string | readonly string[] | undefined;
  /** Its keys: the URL or the path of a JSON Web Key Set. */
  readonly jwks?: string | undefined;
  /** The claim with the scopes, by name or JSON pointer; default `scope`. */
  readonly scopesClaim?: string;
  /** In milliseconds; default 30,000. */
  readonly clockSkew?: number;
}

/** What an access policy is opened with. */
export interface PolicySetting {
  readonly resolve: SecretResolver;
  /** The name of the configuration in messages. */
  readonly name: string;
  readonly log: {
    info(message: string): void;
    warn(fields: object, message: string): void;
    error(fields: object, message: string): void;
  };
  /** Gets the secrets that tokens have from now on, before any entry of the log could show them. */
  readonly onSecrets?: ((secrets: readonly string[]) => void) | undefined;
  /** Called for each refusal that no status of a reply tells. */
  readonly onRefused?: OnRefused | undefined;
}

/** Opens the access policy that the options ask for; undefined when they ask for none. Rejects with ConfigError. */
export async function openAccessPolicy(
  options: ApiOptions,
  setting: PolicySetting,
): Promise<AccessPolicy | undefined> {
  const { required = apiOptions['api.required'].default, rate, burst = 0 } = options;
  const load = loadOf(options);
  if (required === 'none' && rate === undefined && load === undefined) return undefined;
  if (rate !== undefined && !RATE.test(rate)) {
    throw new ConfigError([`${setting.name}: api.rate must be a rate like 100/s`]);
  }
  const wrong = unknownScopes(`${setting.name}: api.basic`, options.basic ?? [], knownScopes(options));
  if (wrong.length > 0) throw new ConfigError(wrong);
  const { log, onRefused } = setting;
  await using opening = new AsyncDisposableStack();
  if (load !== undefined) opening.use(load);
  const sources = required === 'none' ? [] : await openSources(options, setting, opening);
  const policy = createAccessPolicy({
    required,
    scopes: {
      read: options.readScope ?? apiOptions['api.readScope'].default,
      write: options.writeScope ?? apiOptions['api.writeScope'].default,
    },
    sources,
    users: options.users ?? [],
    basicScopes: options.basic ?? apiOptions['api.basic'].default,
    maxFailures: options.maxFailures ?? apiOptions['api.maxFailures'].default,
    onLimit: (address) => log.warn({ address }, 'too many wrong credentials for the API'),
    load,
    rate: rate === undefined ? undefined : rateRule(rate, burst),
    onRefused,
  });
  policy.use(opening.move());
  return policy;
}

/** Opens where tokens are known from, as resources of `opening`. */
async function openSources(
  options: ApiOptions,
  setting: PolicySetting,
  opening: AsyncDisposableStack,
): Promise<readonly TokenProvider[]> {
  const { tokens, stored, jwt = {} } = options;
  const sources: TokenProvider[] = [opening.use(liveTokens(tokens, setting, knownScopes(options))).source];
  if (stored !== undefined) sources.push(opening.use(new StoredTokens(stored, setting)));
  if (hasProvider(jwt)) {
    // Loaded only where it is used.
    const { openJwt } = await import('./jwt.ts');
    const { source, keys } = openJwt(jwt, setting);
    opening.use(keys);
    sources.push(source);
  }
  return sources;
}

function loadOf({ maxLoopDelay = 0, maxWriteDelay = 0, writeDelay }: ApiOptions): Load | undefined {
  if (maxLoopDelay === 0 && maxWriteDelay === 0) return undefined;
  return new Load({ maxLoopDelay, maxWriteDelay, writeDelay: writeDelay ?? (() => 0) });
}

function hasProvider({ issuer, audience, jwks }: JwtOptions): boolean {
  return issuer !== undefined || audience !== undefined || jwks !== undefined;
}

/** The tokens of the configuration, which follow the files of their secrets. */
interface LiveTokens extends Disposable {
  readonly source: FixedTokens;
}

/** Reads `api.tokens`; when a file changes they are read again, and stay as they are where that fails. Throws ConfigError. */
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

/** The rule of a rate such as `100/s`; a burst of 0 is as many as the rate has in its unit. */
function rateRule(rate: string, burst: number): RateRule {
  const [count = '', unit = ''] = rate.split('/');
  const limit = Number(count);
  return { limit, windowMs: UNITS[unit] ?? 1_000, burst: burst === 0 ? limit : burst };
}

/** Shorter secrets could be guessed, in characters. */
const MIN_SECRET = 16;

/** The tokens of the configuration, and the files that they were read from. */
interface ReadTokens {
  readonly tokens: readonly FixedToken[];
  /** Their absolute paths. */
  readonly files: readonly string[];
}

/** What tokens are read with. */
interface TokenReading {
  /** What messages call them. */
  readonly path: string;
  readonly resolve: SecretResolver;
  /** The scopes that exist; undefined where that is not known, and then any scope may be. */
  readonly scopes: readonly string[] | undefined;
}

/**
 * Reads `api.tokens`. Appends one line per problem to `problems`, never with a secret in it; with problems the result is
 * incomplete.
 */
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
