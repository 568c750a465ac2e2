import type { DeliveryHandler } from '../inbox/handler.ts';
import type { CodeCheck } from '../observability/code-check.ts';
import type { CustomEndpoint, ManagementUser } from './code.ts';
import type { OptionKey, Settings } from './options.ts';

/** How a module may write a setting: a list also as one text with commas, an optional one also as undefined. */
type Written<T> = T extends readonly (infer I)[] ? readonly I[] | string : T;

type Section = OptionKey extends infer K ? (K extends `${infer S}.${string}` ? S : never) : never;

type InSection<S extends Section> = {
  readonly [K in OptionKey as K extends `${S}.${infer Name}` ? Name : never]?:
    | Written<Settings[K]>
    | undefined;
};

type Outside = {
  readonly [K in OptionKey as K extends `${string}.${string}` ? never : K]?: Written<Settings[K]> | undefined;
};

interface ManagementCode {
  /** By name: 0 is healthy, any other number is the code of what is wrong. */
  readonly healthChecks?: Readonly<Record<string, CodeCheck>>;
  readonly endpoints?: readonly CustomEndpoint[];
  readonly users?: readonly ManagementUser[];
}

interface WebhookCode {
  /** By event. */
  readonly handlers?: Readonly<Record<string, DeliveryHandler>>;
}

interface Code {
  readonly management?: ManagementCode;
  readonly webhook?: WebhookCode;
}

/** What a configuration module exports by default: the settings, nested, and code. All of it is optional. */
export type PorticoConfig = Outside & { readonly [S in Section]?: InSection<S> } & Code;

/** Gives a configuration module completion and type checks; returns its argument. */
export function defineConfig(config: PorticoConfig): PorticoConfig {
  return config;
}
