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
  file: string | undefined,
  module: Reading,
): readonly PropertySource[] {
  const sources: PropertySource[] = [
    { name: 'commandLineArgs', properties: flagProperties(flags) },
    { name: 'systemEnvironment', properties: environmentProperties(env), aliases: variableNames(env) },
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

/** The variables that set options, by option key. */
function variableNames(env: Environment): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const key of optionKeys) {
    const { env: name, secret } = optionOf(key);
    const found = [name, ...(secret ? [`${name}_FILE`] : [])].find((each) => env[each] !== undefined);
    if (found !== undefined) names.set(key, found);
  }
  return names;
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
