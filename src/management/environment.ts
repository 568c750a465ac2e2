import { findProperty, type PropertySource } from '../config/sources/property-sources.ts';
import type { ShowValue } from './access/masking.ts';

/** The configuration of the process, by source. */
export interface Environment {
  readonly activeProfiles: readonly string[];
  /** The strongest first. */
  readonly propertySources: readonly PropertySource[];
}

/** The properties of all sources, or those whose names are wanted. */
export function describeEnvironment(
  { activeProfiles, propertySources }: Environment,
  show: ShowValue,
  wanted: (name: string) => boolean = () => true,
) {
  return {
    activeProfiles,
    defaultProfiles: [],
    propertySources: propertySources.map(({ name, properties }) => ({
      name,
      properties: Object.fromEntries(
        Array.from(properties)
          .filter(([key]) => wanted(key))
          .map(([key, { origin, ...property }]) => [key, { value: show(key, property), origin }] as const),
      ),
    })),
  };
}

/** One property: its value, and the one of every source. Undefined when no source has it. */
export function describeProperty(environment: Environment, name: string, show: ShowValue) {
  const { activeProfiles, propertySources } = environment;
  const sources = propertySources.map((source) => {
    const found = findProperty(source, name);
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
