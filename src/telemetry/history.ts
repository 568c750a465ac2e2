import { type LatencyHistogram, percentileBetween } from './meters.ts';

/** Interval of the readings, in milliseconds. */
const HISTORY_INTERVAL = 3_000;

/** Ticks per point and points, by window: 3 s for 15 minutes, 30 s for 3 hours, 4 minutes for a day. */
const RESOLUTIONS = {
  '15m': { every: 1, points: 300 },
  '3h': { every: 10, points: 360 },
  '24h': { every: 80, points: 360 },
} as const;

export const HISTORY_WINDOWS = Object.keys(RESOLUTIONS) as readonly HistoryWindow[];

type HistoryWindow = keyof typeof RESOLUTIONS;

/** A window of the history, column by column. */
interface HistoryReading {
  /** Milliseconds between two points. */
  readonly interval: number;
  /** Times of the points in milliseconds since the epoch, oldest first. */
  readonly times: readonly number[];
  /** Columns by name; null marks a gap. */
  readonly columns: Readonly<
    Record<string, { readonly unit: string; readonly values: readonly (number | null)[] }>
  >;
}

/** The recent history of the service, in memory of fixed size. Disposing of it stops its timer. */
export class History implements Disposable {
  readonly #sources: readonly Series[];
  readonly #rings: ReadonlyMap<HistoryWindow, HistoryRing>;
  readonly #now: () => number;
  readonly #timer: NodeJS.Timeout;

  constructor(sources: readonly Series[], now: () => number = Date.now) {
    this.#sources = sources;
    this.#now = now;
    this.#rings = new Map(
      HISTORY_WINDOWS.map((window) => {
        const { every, points } = RESOLUTIONS[window];
        return [window, new HistoryRing(sources, every, points, now())];
      }),
    );
    this.#timer = setInterval(() => this.tick(), HISTORY_INTERVAL).unref();
  }

  get bytes(): number {
    return [...this.#rings.values()].reduce((sum, ring) => sum + ring.bytes, 0);
  }

  tick(): void {
    const now = this.#now();
    for (const ring of this.#rings.values()) ring.tick(now);
  }

  /** The points of a window after a time; all points by default. */
  read(window: HistoryWindow, after = 0): HistoryReading {
    const ring = this.#rings.get(window);
    const columns = this.#sources.map(({ name, unit }, i) => {
      return [name, { unit, values: ring?.column(i, after) ?? [] }] as const;
    });
    return {
      interval: RESOLUTIONS[window].every * HISTORY_INTERVAL,
      times: ring?.times(after) ?? [],
      columns: Object.fromEntries(columns),
    };
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

/** Turns the readings of a series into one value per point. Each resolution has its own columns. */
interface HistoryColumn {
  tick(): void;
  /** The value of the point that ends now and covers `seconds`, or NaN; starts the next point. */
  take(seconds: number): number;
}

function historyColumn(source: Series): HistoryColumn {
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

/** The last points of all columns at one resolution, in typed arrays of fixed size. */
class HistoryRing {
  readonly capacity: number;
  /** Ticks per point. */
  readonly #every: number;
  readonly #columns: readonly HistoryColumn[];
  readonly #times: Float64Array;
  readonly #values: readonly Float32Array[];
  #ticks = 0;
  #next = 0;
  #length = 0;
  #since: number;

  constructor(sources: readonly Series[], every: number, capacity: number, now: number) {
    this.capacity = capacity;
    this.#every = every;
    this.#columns = sources.map(historyColumn);
    this.#times = new Float64Array(capacity);
    this.#values = sources.map(() => new Float32Array(capacity));
    this.#since = now;
  }

  get bytes(): number {
    return this.#values.reduce((sum, { byteLength }) => sum + byteLength, this.#times.byteLength);
  }

  /** Takes a reading; returns whether it completed a point. `now` is in milliseconds since the epoch. */
  tick(now: number): boolean {
    for (const column of this.#columns) column.tick();
    if (++this.#ticks % this.#every !== 0) return false;
    const seconds = Math.max(0.001, (now - this.#since) / 1_000);
    this.#since = now;
    this.#times[this.#next] = now;
    for (const [i, column] of this.#columns.entries()) {
      const values = this.#values[i];
      if (values !== undefined) values[this.#next] = column.take(seconds);
    }
    this.#next = (this.#next + 1) % this.capacity;
    this.#length = Math.min(this.#length + 1, this.capacity);
    return true;
  }

  /** The times of the points after a time, oldest first, in milliseconds since the epoch. */
  times(after: number): readonly number[] {
    return this.#indices(after).map((i) => this.#times[i] ?? 0);
  }

  /** The values of a column at these times; null marks a gap. */
  column(number: number, after: number): readonly (number | null)[] {
    const values = this.#values[number];
    return this.#indices(after).map((i) => finite(values?.[i]));
  }

  #indices(after: number): readonly number[] {
    const all = Array.from(
      { length: this.#length },
      (_, i) => (this.#next - this.#length + i + this.capacity) % this.capacity,
    );
    return all.filter((i) => (this.#times[i] ?? 0) > after);
  }
}

/** Rounds to seven digits, the precision of a Float32. */
function finite(value: number | undefined): number | null {
  return value === undefined || !Number.isFinite(value) ? null : Number(value.toPrecision(7));
}

/** The name and unit of a column. */
interface Described {
  /** Lower-case words joined by dots, such as `rest.requests`. */
  readonly name: string;
  /** Such as `bytes`, `ms`, `share` or `1/s`. */
  readonly unit: string;
}

/** The growth of a count per second. */
interface RateSeries extends Described {
  readonly kind: 'rate';
  read(): number;
}

/** The growth of one count divided by that of another: a mean, or a share. */
interface RatioSeries extends Described {
  readonly kind: 'ratio';
  read(): number;
  per(): number;
}

/** The mean or the maximum of a value over a point. */
interface ValueSeries extends Described {
  readonly kind: 'mean' | 'peak';
  read(): number;
}

/** A percentile of durations, in milliseconds. */
interface PercentileSeries extends Described {
  readonly kind: 'percentile';
  readonly histogram: LatencyHistogram;
  /** From 0 to 1. */
  readonly share: number;
}

/** The source of a column's values. A reading that fails or is NaN leaves a gap. */
export type Series = RateSeries | RatioSeries | ValueSeries | PercentileSeries;
