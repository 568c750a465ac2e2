/** A value at a time, in seconds since the start. */
export interface Point {
  readonly at: number;
  readonly value: number;
}

/**
 * Growth of the values per hour: the slope of the best-fitting line. NaN for fewer than two distinct times.
 */
export function slopePerHour(points: readonly Point[]): number {
  const count = points.length;
  const mean = (of: (point: Point) => number) => points.reduce((sum, point) => sum + of(point), 0) / count;
  const [at, value] = [mean((point) => point.at), mean((point) => point.value)];
  const covariance = mean((point) => (point.at - at) * (point.value - value));
  const variance = mean((point) => (point.at - at) ** 2);
  return variance === 0 ? Number.NaN : (covariance / variance) * 3_600;
}
