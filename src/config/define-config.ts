import type { DeliveryHandler } from '../inbox/handler.ts';
import type { HealthIndicator } from '../observability/health/health.ts';
import type { OptionKey, Settings } from './options/options.ts';
import type { CustomEndpoint } from './schema/custom-endpoint.ts';
import type { ConfiguredCheck, HealthGroupOptions } from './schema/health-code.ts';
import type { ManagementUser } from './schema/management-user.ts';
import type { HandlerSpec } from './schema/module-handlers.ts';
import type { ForwardsConfig } from './schema/webhook-forwards.ts';
import type { SourcesConfig } from './schema/webhook-sources.ts';

/** The type of a setting in a module: a list may also be one string with commas. */
type Written<T> = T extends readonly (infer I)[] ? readonly I[] | string : T;

type Section = OptionKey extends infer K ? (K extends `${infer S}.${string}` ? S : never) : never;

type Below<S extends string> = OptionKey extends infer K ? (K extends `${S}.${infer N}` ? N : never) : never;

/** A section: settings and nested sections. */
type InSection<S extends string> = {
  readonly [N in Below<S> as N extends `${infer Head}.${string}`
    ? Head
    : N]?: N extends `${infer Head}.${string}`
    ? InSection<`${S}.${Head}`>
    : `${S}.${N}` extends infer K extends OptionKey
      ? Written<Settings[K]> | undefined
      : never;
};

type Outside = {
  readonly [K in OptionKey as K extends `${string}.${string}` ? never : K]?: Written<Settings[K]> | undefined;
};

interface ManagementCode {
  /** By name; 0 is healthy, any other number is an error code. */
  readonly healthChecks?: Readonly<Record<string, HealthIndicator['check'] | ConfiguredCheck>>;
  readonly healthGroups?: Readonly<Record<string, HealthGroupOptions>>;
  readonly endpoints?: readonly CustomEndpoint[];
  readonly users?: readonly ManagementUser[];
}

interface WebhookCode {
  /** By event. */
  readonly handlers?: Readonly<Record<string, DeliveryHandler | HandlerSpec>>;
  /** Signed senders by name, each at /webhook/<name>. */
  readonly sources?: SourcesConfig;
  /** Forward addresses by name. */
  readonly forward?: ForwardsConfig;
}

interface Code {
  readonly management?: ManagementCode;
  readonly webhook?: WebhookCode;
}

/** The default export of a configuration module: nested settings and code, all of it optional. */
export type PorticoConfig = Outside & { readonly [S in Section]?: InSection<S> } & Code;

/** Gives a configuration module completion and type checks. Returns its argument. */
export function defineConfig(config: PorticoConfig): PorticoConfig {
  return config;
}
