import type { LatencyHistogram } from '../metrics/latency-histogram.ts';

/** What a column of the history shows. */
interface Described {
  /** Lower-case words joined by dots, such as `rest.requests`. */
  readonly name: string;
  /** Such as `bytes`, `ms`, `share` or `1/s`. */
  readonly unit: string;
}

/** The growth of a count per second. */
export interface RateSource extends Described {
  readonly kind: 'rate';
  read(): number;
}

/** The growth of one count by that of another: a mean, or a share. */
export interface RatioSource extends Described {
  readonly kind: 'ratio';
  read(): number;
  per(): number;
}

/** A value: the mean of a span, or its highest one. */
export interface ValueSource extends Described {
  readonly kind: 'mean' | 'peak';
  read(): number;
}

/** A percentile of durations, in milliseconds. */
export interface PercentileSource extends Described {
  readonly kind: 'percentile';
  readonly histogram: LatencyHistogram;
  /** From 0 to 1. */
  readonly share: number;
}

/** Where a column of the history has its values from. A reading that fails or is NaN leaves a gap. */
export type HistorySource = RateSource | RatioSource | ValueSource | PercentileSource;
