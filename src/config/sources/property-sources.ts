import { moduleOption, optionKeys, optionOf } from '../options/options.ts';
import type { Environment } from './environment.ts';
import type { Flags } from './flags.ts';
import type { Reading } from './reading.ts';

/** A value of a source, and whether it is secret. */
export interface Property {
  readonly value: unknown;
  readonly origin: string;
  readonly secret: boolean;
}

/** A source of configuration with its properties. */
export interface PropertySource {
  readonly name: string;
  readonly properties: ReadonlyMap<string, Property>;
  /** The name of an option in this source, by its key, where the two differ. */
  readonly aliases?: ReadonlyMap<string, string>;
}

/** A property by its name in this source, or by the name of the option that it sets: `rest.port` is REST_PORT. */
export function findProperty({ properties, aliases }: PropertySource, name: string) {
  const key = properties.has(name) ? name : aliases?.get(name);
  const property = key === undefined ? undefined : properties.get(key);
  return key === undefined || property === undefined ? undefined : { ...property, key };
}

type Properties = PropertySource['properties'];

/** All sources of configuration, highest precedence first; `file` is the name of the module, if there is one. */
export function propertySources(
  flags: Flags,
  env: Environment,
  environment: Reading,
  file: string | undefined,
  module: Reading,
): readonly PropertySource[] {
  const sources: PropertySource[] = [
    { name: 'commandLineArgs', properties: flagProperties(flags) },
    { name: 'systemEnvironment', properties: environmentProperties(env), aliases: originsOf(environment) },
  ];
  if (file !== undefined) {
    sources.push({ name: `Config resource "${file}"`, properties: readProperties(module) });
  }
  return [...sources, { name: 'defaults', properties: defaultProperties() }];
}

function flagProperties(flags: Flags): Properties {
  const properties = new Map(readProperties(flags));
  if (flags.module !== undefined) {
    properties.set(moduleOption.key, { value: flags.module, origin: moduleOption.flag, secret: false });
  }
  return properties;
}

function readProperties({ found }: Reading): Properties {
  return new Map([...found].map(([key, entry]) => [key, { ...entry, secret: optionOf(key).secret }]));
}

function originsOf({ found }: Reading): ReadonlyMap<string, string> {
  return new Map(Array.from(found, ([key, { origin }]) => [key, origin]));
}

/** All variables, since operators look for PATH and HOME here too. */
export function environmentProperties(env: Environment): Properties {
  const secrets = new Set(optionKeys.filter((key) => optionOf(key).secret).map((key) => optionOf(key).env));
  const set = Object.entries(env).filter(([, value]) => value !== undefined);
  return new Map(
    set.map(([name, value]) => {
      const origin = `System Environment Property "${name}"`;
      return [name, { value, origin, secret: secrets.has(name) }];
    }),
  );
}

function defaultProperties(): Properties {
  const set = optionKeys.filter((key) => optionOf(key).default !== undefined);
  return new Map(
    set.map((key) => {
      const { default: value, secret } = optionOf(key);
      return [key, { value, origin: 'default', secret }];
    }),
  );
}
