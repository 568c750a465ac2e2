import { spread } from './statistics.ts';

/** A figure for people: three digits, with grouped thousands. */
export function grouped(value: number): string {
  return Math.abs(value) >= 100 ? Math.round(value).toLocaleString('en-US') : value.toPrecision(3);
}

/** The lowest and the highest of several values, such as `1.2-1.5`. */
export function range(values: readonly number[], format: (value: number) => string = grouped): string {
  return spread(values).map(format).join('-');
}
