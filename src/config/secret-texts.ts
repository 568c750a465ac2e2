import { optionKeys, optionOf } from './options/options.ts';
import type { Environment } from './sources/environment.ts';
import type { Reading } from './sources/reading.ts';

const secretKeys = optionKeys.filter((key) => optionOf(key).secret);

/** The values of all secret options in the sources, valid or not, longest first. */
export function secretTexts(env: Environment, readings: readonly Reading[]): readonly string[] {
  const values: unknown[] = secretKeys.flatMap((key) => [
    env[optionOf(key).env],
    ...readings.flatMap((reading) => reading.found.get(key)?.value),
  ]);
  const texts = values.filter((value) => typeof value === 'string' && value.trim() !== '') as string[];
  return texts.sort((a, b) => b.length - a.length);
}
