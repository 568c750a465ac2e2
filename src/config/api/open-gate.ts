import type { ApiGate } from '../../http/access/api-gate.ts';
import { createGate } from '../../http/access/create-gate.ts';
import { Load } from '../../http/access/load.ts';
import type { Required } from '../../http/access/need.ts';
import { StoredTokens, type TokenStore } from '../../http/access/stored-tokens.ts';
import type { TokenSource } from '../../http/access/token-source.ts';
import type { BasicUser } from '../../http/auth/basic-auth.ts';
import type { OnRefused } from '../../http/server/refused-request.ts';
import { ConfigError } from '../config-error.ts';
import { apiOptions, knownScopes, RATE, unknownScopes } from '../options/access/api-options.ts';
import type { ApiTokensConfig } from '../schema/api-tokens.ts';
import type { SecretResolver } from '../sources/secret-resolver.ts';
import { liveTokens } from './live-tokens.ts';
import { rateRule } from './rate-rule.ts';

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

/** What a gate is opened with. */
export interface GateSetting {
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

/** Opens the gate that the options ask for; undefined when they ask for none. Rejects with ConfigError. */
export async function openGate(options: ApiOptions, setting: GateSetting): Promise<ApiGate | undefined> {
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
  const gate = createGate({
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
  gate.use(opening.move());
  return gate;
}

/** Opens where tokens are known from, as resources of `opening`. */
async function openSources(
  options: ApiOptions,
  setting: GateSetting,
  opening: AsyncDisposableStack,
): Promise<readonly TokenSource[]> {
  const { tokens, stored, jwt = {} } = options;
  const sources: TokenSource[] = [opening.use(liveTokens(tokens, setting, knownScopes(options))).source];
  if (stored !== undefined) sources.push(opening.use(new StoredTokens(stored, setting)));
  if (hasProvider(jwt)) {
    // Loaded only where it is used.
    const { openJwt } = await import('./open-jwt.ts');
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
