/** The median; of an even number of values, the mean of the middle two. NaN for none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const at = (index: number) => sorted[index] ?? Number.NaN;
  return sorted.length % 2 === 1 ? at(Math.floor(middle)) : (at(middle - 1) + at(middle)) / 2;
}

/** The value that `percent` of the values do not exceed. NaN for none. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? Number.NaN;
}

/** The lowest and the highest. */
export function spread(values: readonly number[]): readonly [number, number] {
  return [Math.min(...values), Math.max(...values)];
}

/** The ratio of two medians, with the lowest and highest ratio of corresponding rounds. */
export function ratio(
  values: readonly number[],
  others: readonly number[],
): { readonly value: number; readonly spread: readonly [number, number] } {
  const rounds = values.map((value, round) => value / (others[round] ?? Number.NaN));
  return { value: median(values) / median(others), spread: spread(rounds) };
}
