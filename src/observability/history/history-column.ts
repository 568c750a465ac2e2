import { percentileBetween } from '../metrics/latency-histogram.ts';
import type { HistorySource } from './history-source.ts';

/** Turns the readings of a source into one value per span. Each resolution has columns of its own. */
export interface HistoryColumn {
  /** Takes a reading; at every tick. */
  tick(): void;
  /** The value of the span that ends now, which took so many seconds; NaN for none. The next span begins. */
  take(seconds: number): number;
}

export function historyColumn(source: HistorySource): HistoryColumn {
  switch (source.kind) {
    case 'rate':
      return rateColumn(safely(source.read), () => undefined);
    case 'ratio':
      return rateColumn(safely(source.read), safely(source.per));
    case 'mean':
    case 'peak':
      return valueColumn(safely(source.read), source.kind);
    case 'percentile': {
      const { histogram, share } = source;
      const before = histogram.counts.slice();
      return {
        tick() {},
        take() {
          const value = percentileBetween(before, histogram.counts, share);
          before.set(histogram.counts);
          return value;
        },
      };
    }
  }
}

function rateColumn(read: () => number, per: () => number | undefined): HistoryColumn {
  let last = read();
  let lastPer = per();
  return {
    tick() {},
    take(seconds) {
      const [now, nowPer] = [read(), per()];
      const grown = now - last;
      const by = nowPer === undefined || lastPer === undefined ? seconds : nowPer - lastPer;
      last = now;
      lastPer = nowPer;
      return by > 0 ? grown / by : Number.NaN;
    },
  };
}

function valueColumn(read: () => number, kind: 'mean' | 'peak'): HistoryColumn {
  let sum = 0;
  let count = 0;
  let highest = Number.NaN;
  return {
    tick() {
      const value = read();
      if (Number.isNaN(value)) return;
      sum += value;
      count++;
      if (!(highest >= value)) highest = value;
    },
    take() {
      const value = kind === 'peak' ? highest : sum / count;
      sum = 0;
      count = 0;
      highest = Number.NaN;
      return value;
    },
  };
}

function safely(read: () => number): () => number {
  return () => {
    try {
      return read();
    } catch {
      return Number.NaN;
    }
  };
}
