import type { ApiTokensConfig, ManagementUser } from './access/config.ts';
import type { DoorSetup } from './app/load-config.ts';
import type { Door, SettingKey, Settings } from './config/options/options.ts';
import type { RelationsData } from './config/schema/declaration.ts';
import type { GraphqlConfig, GraphqlContext } from './graphql/config.ts';
import type { AlertsConfig, ForwardsConfig, HandlerSpec, SchedulesConfig } from './inbox/config.ts';
import type { DeliveryHandler } from './inbox/delivery.ts';
import type { ConfiguredCheck, CustomEndpoint, HealthGroupOptions } from './management/config.ts';
import type { SendingConfig } from './sending/config.ts';
import type { SourcesConfig } from './signatures/config.ts';
import type { HealthIndicator } from './telemetry/health.ts';

/** The type of a setting in a module: a list may also be one string with commas. */
type Written<T> = T extends readonly (infer I)[] ? readonly I[] | string : T;

/** The object that sets one option: `{ rest: { port: 80 } }` for rest.port. */
type Setting<Path extends string, T> = Path extends `${infer Section}.${infer Rest}`
  ? { readonly [K in Section]?: Setting<Rest, T> }
  : { readonly [K in Path]?: T };

/** The intersection of a union's members. */
type All<U> = (U extends unknown ? (member: U) => void : never) extends (all: infer A) => void ? A : never;

type AllSettings = All<{ [K in SettingKey]: Setting<K, Written<Settings[K]> | undefined> }[SettingKey]>;

/** The doors by name, each with the code that extends its Fastify instance. */
type Setups = { readonly [D in Door]?: { readonly setup?: DoorSetup } };

interface Code<C, R extends RelationsData = Record<never, never>> {
  readonly api?: {
    /** Tokens for REST and GraphQL by name. */
    readonly tokens?: ApiTokensConfig;
  };
  readonly graphql?: GraphqlConfig<C, R>;
  readonly management?: {
    /** By name; 0 is healthy, any other number is an error code. */
    readonly healthChecks?: Readonly<Record<string, HealthIndicator['check'] | ConfiguredCheck>>;
    readonly healthGroups?: Readonly<Record<string, HealthGroupOptions>>;
    readonly endpoints?: readonly CustomEndpoint[];
    readonly users?: readonly ManagementUser[];
  };
  readonly webhook?: {
    /** By event. */
    readonly handlers?: Readonly<Record<string, DeliveryHandler | HandlerSpec>>;
    /** Signed senders by name, each at /webhook/<name>. */
    readonly sources?: SourcesConfig;
    /** Forward addresses by name. */
    readonly forward?: ForwardsConfig;
    readonly alerts?: AlertsConfig;
    /** Deliveries that Portico stores on a schedule, by name. */
    readonly schedules?: SchedulesConfig;
    /** How events are sent to the endpoints of customers; `true` for the defaults. Default: they are not. */
    readonly sending?: boolean | SendingConfig;
  };
}

/** Nested settings and code, all optional. */
type Options<C, R extends RelationsData = Record<never, never>> = AllSettings & Code<C, R> & Setups;

/** The default export of a configuration module: nested settings, code and relations, all optional. */
export type PorticoConfig<C = GraphqlContext> = Options<C> & {
  /** Relations by name, each served at its path of the REST door, or which tables of the database are relations. */
  readonly relations?: RelationsData | Introspected;
};

/** The tables of the database, all with a primary key or some of them, instead of a declaration. */
type Introspected =
  | 'introspect'
  | {
      readonly introspect: {
        /** The schema of PostgreSQL. Default: the current one. */
        readonly schema?: string;
        /** Default: all tables. */
        readonly only?: readonly string[];
        readonly except?: readonly string[];
      };
    };

/** A configuration with its relations in their own type, from which `Row` and `NewRow` infer. */
export type RelationsConfig<C, R extends RelationsData> = Options<C> & { readonly relations: R };

/** Declared relations; none where nothing is known of them. */
type RelationsOf<R extends RelationsData> = RelationsData extends R ? Record<never, never> : R;

/**
 * Returns its argument; gives a configuration module completion and type checks. The type of the context is
 * that of `graphql.context`, and `Row<typeof config, 'books'>` the type of the rows of a relation.
 */
export function defineConfig<
  const R extends RelationsData = RelationsData,
  C = GraphqlContext<RelationsOf<R>>,
>(
  config: Options<C, RelationsOf<R>> & { readonly relations?: R | Introspected },
): RelationsData extends R ? PorticoConfig<C> : RelationsConfig<C, R> {
  return config as RelationsConfig<C, R>;
}
