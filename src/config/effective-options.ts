import { type OptionKey, optionKeys, optionOf, type Settings } from './options/options.ts';
import { findProperty, type PropertySource } from './sources/property-sources.ts';

/** An option with its effective value. */
export interface EffectiveOption {
  readonly key: OptionKey;
  readonly value: unknown;
  /** The place that set the value; undefined when no source did. */
  readonly origin: string | undefined;
  readonly secret: boolean;
}

/** All options with their effective values and origins, in the order of the documentation. */
export function effectiveOptions(
  settings: Settings,
  sources: readonly PropertySource[],
): readonly EffectiveOption[] {
  return optionKeys.map((key) => {
    const origins = sources.map((source) => findProperty(source, key)?.origin);
    return {
      key,
      value: settings[key],
      origin: origins.find((origin) => origin !== undefined),
      secret: optionOf(key).secret,
    };
  });
}
