/** Median, 99th percentile and maximum of times in milliseconds, as text. */
export function timesOf(times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (part: number) =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0).toFixed(1);
  return `${at(0.5)} ms (p99 ${at(0.99)}, at most ${at(1)})`;
}
