import type { ApiGate, Refusal } from '../../http/access/api-gate.ts';
import { createGate } from '../../http/access/create-gate.ts';
import type { Required } from '../../http/access/need.ts';
import type { BasicUser } from '../../http/auth/basic-auth.ts';
import { apiOptions } from '../options/api-options.ts';
import type { ApiTokensConfig } from '../schema/api-tokens.ts';
import type { SecretResolver } from '../sources/secret-resolver.ts';
import { liveTokens } from './live-tokens.ts';

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
  /** Scopes of each of `users`, by Basic; default none, and no Basic. */
  readonly basic?: readonly string[];
  readonly users?: readonly BasicUser[];
  /** Wrong credentials from one address within a minute; default 10, 0 for no limit. */
  readonly maxFailures?: number;
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
  /** Called for each refusal. */
  readonly onRefusal?: ((refusal: Refusal) => void) | undefined;
}

/** Opens the gate that the options ask for; undefined when they ask for none. Throws ConfigError. */
export function openGate(options: ApiOptions, setting: GateSetting): ApiGate | undefined {
  const { required = apiOptions['api.required'].default } = options;
  if (required === 'none') return undefined;
  const { log, onRefusal } = setting;
  const tokens = liveTokens(options.tokens, setting);
  const gate = createGate({
    required,
    scopes: {
      read: options.readScope ?? apiOptions['api.readScope'].default,
      write: options.writeScope ?? apiOptions['api.writeScope'].default,
    },
    sources: [tokens.source],
    users: options.users ?? [],
    basicScopes: options.basic ?? apiOptions['api.basic'].default,
    maxFailures: options.maxFailures ?? apiOptions['api.maxFailures'].default,
    onLimit: (address) => log.warn({ address }, 'too many wrong credentials for the API'),
    onRefusal,
  });
  gate.use(tokens);
  return gate;
}
