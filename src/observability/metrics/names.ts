import { MeterError } from './meter-error.ts';

const NAME = /^[a-z][a-z0-9]*(?:[._][a-z0-9]+)*$/;
const UNIT = /^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/;
/** Labels with a meaning of their own in Prometheus. */
const RESERVED = ['le', 'quantile'];

/** Checks the names of a meter. Throws MeterError. */
export function checkNames(
  name: string,
  unit: string | undefined,
  tagKeys: readonly string[],
  buckets: readonly number[] = [],
): void {
  const quoted = JSON.stringify;
  if (!NAME.test(name))
    throw new MeterError(`${quoted(name)} is not a valid meter name: use lower-case words joined by dots`);
  if (unit !== undefined && !UNIT.test(unit))
    throw new MeterError(`${quoted(unit)} is not a valid unit of ${name}: use a plain word like bytes`);
  const wrong = tagKeys.find((key) => !NAME.test(key) || RESERVED.includes(key));
  if (wrong !== undefined)
    throw new MeterError(`${quoted(wrong)} cannot be a tag of ${name}: use another word`);
  if (new Set(tagKeys.map((key) => key.replaceAll('.', '_'))).size < tagKeys.length)
    throw new MeterError(`Two tags of ${name} have the same name: ${tagKeys.join(', ')}`);
  if (!buckets.every((bound, i) => bound > (buckets[i - 1] ?? 0) && bound < Infinity))
    throw new MeterError(`The buckets of ${name} must be seconds in ascending order: ${buckets.join(', ')}`);
}
