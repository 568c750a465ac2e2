import { findProperty, type PropertySource } from '../config/sources.ts';
import { ExpectedError } from '../core/errors.ts';
import type { ShowValue } from './masking.ts';

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
export function describeEnvironment(
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
        const value = show(own, property);
        return [own, { value, origin, ...(winner !== undefined && { overriddenBy: winner }) }] as const;
      });
      return { name, properties: Object.fromEntries(described.filter((each) => each !== undefined)) };
    }),
  };
}

/** The keys of options, by their names in a source. */
function optionKeys(aliases: PropertySource['aliases'] = new Map()): ReadonlyMap<string, string> {
  return new Map(Array.from(aliases, ([key, own]) => [own, key]));
}

/** One property: its value, and its value in each source. Undefined if no source has it. */
export function describeProperty(environment: Environment, name: string, show: ShowValue) {
  const { activeProfiles, propertySources } = environment;
  // REST_PORT is rest.port, which other sources may set.
  const keys = propertySources.map(({ aliases }) => optionKeys(aliases).get(name));
  const key = keys.find((each) => each !== undefined) ?? name;
  const sources = propertySources.map((source) => {
    const found = findProperty(source, key);
    if (found === undefined) return { name: source.name };
    return { name: source.name, property: { value: show(found.key, found), origin: found.origin } };
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

/** The options of the management door are invalid; the message says what to change. */
export class ManagementOptionsError extends ExpectedError {
  override readonly name = 'ManagementOptionsError';
  readonly code = 'MANAGEMENT_OPTIONS';
}
