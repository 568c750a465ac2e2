import { moduleOption, optionKeys, optionOf } from '../options/options.ts';
import type { Environment } from './environment.ts';
import type { Flags } from './flags.ts';
import type { PropertySource } from './property-source.ts';
import type { Reading } from './reading.ts';

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
