import { type OptionKey, optionKeys, optionOf, type Settings } from './options/options.ts';
import type { PropertySource } from './sources/property-source.ts';

/** An option with the value that holds. */
export interface EffectiveOption {
  readonly key: OptionKey;
  readonly value: unknown;
  /** Where the value comes from; undefined for one that nobody set. */
  readonly origin: string | undefined;
  readonly secret: boolean;
}

/** Every option with its value and the place that gave it, in the order of the documentation. */
export function effectiveOptions(
  settings: Settings,
  sources: readonly PropertySource[],
): readonly EffectiveOption[] {
  return optionKeys.map((key) => {
    const origins = sources.map(({ properties, aliases }) => {
      return (properties.get(key) ?? properties.get(aliases?.get(key) ?? ''))?.origin;
    });
    return {
      key,
      value: settings[key],
      origin: origins.find((origin) => origin !== undefined),
      secret: optionOf(key).secret,
    };
  });
}
