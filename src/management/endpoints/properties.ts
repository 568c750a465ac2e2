import { HttpProblem, type Reply, type RequestContext } from '@portico/transport';
import { settingKeys } from '../../config/options/options.ts';
import { type EffectiveOption, findProperty, type PropertySource } from '../../config/sources.ts';
import { jsonReply, jsonTextReply, NOT_FOUND } from '../management-errors.ts';
import type { valueShower } from '../masking.ts';
import type { ManagementEndpoint } from '../operations.ts';

type ShowValue = ReturnType<typeof valueShower>;

/** The options of one section, with their values and origins. */
interface Bean {
  readonly prefix: string;
  readonly properties: Record<string, unknown>;
  readonly inputs: Record<string, { readonly value: unknown; readonly origin: string | undefined }>;
}

/** The section of options whose names have none. */
const COMMON = 'common';

export function configPropsEndpoint(
  application: string,
  options: readonly EffectiveOption[],
  show: ShowValue,
): ManagementEndpoint {
  const beans = beansOf(options, show);
  const bodyOf = (shown: ReadonlyMap<string, Bean>) =>
    JSON.stringify({ contexts: { [application]: { beans: Object.fromEntries(shown) } } });
  const whole = bodyOf(beans);

  function part(ctx: RequestContext): Reply {
    const { param: prefix } = ctx;
    const found = Array.from(beans).filter(([, bean]) => prefix !== '' && bean.prefix.startsWith(prefix));
    if (found.length === 0) throw NOT_FOUND;
    return jsonTextReply(ctx, bodyOf(new Map(found)));
  }

  return {
    id: 'configprops',
    about: 'Every option with its value, and where it was set.',
    routes: () => ({
      '/configprops': { get: (ctx) => jsonTextReply(ctx, whole) },
      '/configprops/{prefix}': { get: part },
    }),
  };
}

function beansOf(options: readonly EffectiveOption[], show: ShowValue): ReadonlyMap<string, Bean> {
  const beans = new Map<string, Bean>();
  for (const { key, origin, ...property } of options) {
    const dot = key.indexOf('.');
    const section = dot === -1 ? COMMON : key.slice(0, dot);
    const name = key.slice(dot + 1);
    const bean = beans.get(section) ?? { prefix: section, properties: {}, inputs: {} };
    const value = property.value === undefined ? undefined : show(key, property);
    bean.properties[name] = value;
    if (value !== undefined) bean.inputs[name] = { value, origin };
    beans.set(section, bean);
  }
  return beans;
}

/** The env endpoint (CONTRACT.md#management-bodies), described once, since nothing changes it. */
export function envEndpoint(environment: Environment, show: ShowValue): ManagementEndpoint {
  const body = JSON.stringify(describeEnvironment(environment, show));

  /** The properties whose names contain the pattern, in any case; all properties without one. */
  function bodyFor(pattern: unknown): string {
    if (pattern === undefined || pattern === '') return body;
    if (typeof pattern !== 'string') throw new HttpProblem(400, 'TWO_PATTERNS', 'Give one pattern');
    const part = pattern.toLowerCase();
    const contains = (name: string) => name.toLowerCase().includes(part);
    return JSON.stringify(describeEnvironment(environment, show, contains));
  }

  return {
    id: 'env',
    about: 'The source of every setting, strongest source first.',
    routes: () => ({
      '/env': { get: (ctx) => jsonTextReply(ctx, bodyFor(ctx.query.pattern)) },
      '/env/{toMatch}': {
        get(ctx) {
          const found = describeProperty(environment, ctx.param, show);
          if (found === undefined) throw NOT_FOUND;
          return jsonReply(ctx, found);
        },
      },
    }),
  };
}

/** The configuration of the process, by source. */
export interface Environment {
  readonly activeProfiles: readonly string[];
  /** Strongest source first. */
  readonly propertySources: readonly PropertySource[];
}

/**
 * The properties of all sources, or those that `wanted` selects. If a stronger source also sets a property,
 * under its own name or that of its option, `overriddenBy` names that source.
 */
function describeEnvironment(
  { activeProfiles, propertySources }: Environment,
  show: ShowValue,
  wanted: (name: string) => boolean = () => true,
) {
  const winners = new Map<string, string>();
  return {
    activeProfiles,
    defaultProfiles: [],
    propertySources: propertySources.map(({ name, properties, aliases }) => {
      const keys = optionKeys(aliases);
      const described = Array.from(properties, ([own, { origin, ...property }]) => {
        const key = keys.get(own) ?? own;
        const winner = winners.get(key);
        if (winner === undefined) winners.set(key, name);
        if (!wanted(own)) return undefined;
        const value = show(own, property, SETTINGS.has(key));
        return [own, { value, origin, ...(winner !== undefined && { overriddenBy: winner }) }] as const;
      });
      return { name, properties: Object.fromEntries(described.filter((each) => each !== undefined)) };
    }),
  };
}

/** The keys of the service's own settings. */
const SETTINGS: ReadonlySet<string> = new Set(settingKeys);

/** The keys of options, by their names in a source. */
function optionKeys(aliases: PropertySource['aliases'] = new Map()): ReadonlyMap<string, string> {
  return new Map(Array.from(aliases, ([key, own]) => [own, key]));
}

/** One property: its value, and its value in each source. Undefined if no source has it. */
function describeProperty(environment: Environment, name: string, show: ShowValue) {
  const { activeProfiles, propertySources } = environment;
  // REST_PORT is rest.port, which other sources may set.
  const keys = propertySources.map(({ aliases }) => optionKeys(aliases).get(name));
  const key = keys.find((each) => each !== undefined) ?? name;
  const sources = propertySources.map((source) => {
    const found = findProperty(source, key);
    if (found === undefined) return { name: source.name };
    const value = show(found.key, found, SETTINGS.has(key));
    return { name: source.name, property: { value, origin: found.origin } };
  });
  const strongest = sources.find(({ property }) => property !== undefined);
  if (strongest?.property === undefined) return undefined;
  return {
    property: { source: strongest.name, value: strongest.property.value },
    activeProfiles,
    defaultProfiles: [],
    propertySources: sources,
  };
}
