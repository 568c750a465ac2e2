import { LatencyHistogram, percentileBetween } from './meters.ts';

/** A reading is taken so often, in milliseconds. */
export const HISTORY_INTERVAL = 3_000;

/** Ticks per point and points, by window: 3 s for 15 minutes, 30 s for 3 hours, 4 minutes for a day. */
const RESOLUTIONS = {
  '15m': { every: 1, points: 300 },
  '3h': { every: 10, points: 360 },
  '24h': { every: 80, points: 360 },
} as const;

/** The names of the windows, the shortest first. */
export const HISTORY_WINDOWS = Object.keys(RESOLUTIONS) as readonly HistoryWindow[];

type HistoryWindow = keyof typeof RESOLUTIONS;

/** A window of the history, column by column. */
export interface HistoryReading {
  /** Milliseconds between two points. */
  readonly interval: number;
  /** Milliseconds since the epoch, oldest first. */
  readonly times: readonly number[];
  /** By name; null where there is no value. */
  readonly columns: Readonly<
    Record<string, { readonly unit: string; readonly values: readonly (number | null)[] }>
  >;
}

/**
 * The recent past of the service in memory that is bounded from the start. Disposing of it ends its timer, which does not
 * keep the process alive.
 */
export class History implements Disposable {
  readonly #sources: readonly Series[];
  readonly #rings: ReadonlyMap<HistoryWindow, HistoryRing>;
  readonly #listeners = new Set<() => void>();
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

  /** The size of all points, in bytes. */
  get bytes(): number {
    return [...this.#rings.values()].reduce((sum, ring) => sum + ring.bytes, 0);
  }

  /** Takes a reading of all sources. */
  tick(): void {
    const now = this.#now();
    for (const ring of this.#rings.values()) ring.tick(now);
    for (const listener of this.#listeners) listener();
  }

  /** A window's points after a moment, all by default. */
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

  /** Calls a listener after each reading. */
  onTick(listener: () => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => this.#listeners.delete(listener) };
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

/** Turns the readings of a source into one value per span. Each resolution has columns of its own. */
interface HistoryColumn {
  /** Takes a reading; at every tick. */
  tick(): void;
  /** The value of the span that ends now, which took so many seconds; NaN for none. The next span begins. */
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

/** The last points of all columns at one resolution, in typed arrays that never grow. */
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

  /** The size of its arrays, in bytes. */
  get bytes(): number {
    return this.#values.reduce((sum, { byteLength }) => sum + byteLength, this.#times.byteLength);
  }

  /** Takes a reading; true when it has made a point. `now` is in milliseconds since the epoch. */
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

  /** The times of its points after a moment, oldest first, in milliseconds since the epoch. */
  times(after: number): readonly number[] {
    return this.#indices(after).map((i) => this.#times[i] ?? 0);
  }

  /** The values of a column at these times; null for gaps. */
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

/** Seven digits are what a Float32 holds. */
function finite(value: number | undefined): number | null {
  return value === undefined || !Number.isFinite(value) ? null : Number(value.toPrecision(7));
}

/** What a column of the history shows. */
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

/** The growth of one count by that of another: a mean, or a share. */
interface RatioSeries extends Described {
  readonly kind: 'ratio';
  read(): number;
  per(): number;
}

/** A value: the mean of a span, or its highest one. */
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

/** Where a column of the history has its values from. A reading that fails or is NaN leaves a gap. */
export type Series = RateSeries | RatioSeries | ValueSeries | PercentileSeries;

/** What is kept of one reply. */
export interface TailedRequest {
  /** Its number since the start. */
  readonly number: number;
  readonly door: string;
  /** The route's template, never the URL. */
  readonly route: string;
  readonly method: string;
  readonly status: number;
  /** When the reply was complete, to the second, in milliseconds since the epoch. */
  readonly endedAt: number;
  /** In milliseconds. */
  readonly duration: number;
}

/** The clock is read so often, in milliseconds: to read it costs more than all the rest of a reply's record. */
const CLOCK = 1_000;

/**
 * Keeps the last replies of all doors without allocating for any: numbers lie in typed arrays, and the texts are those
 * that the routes have anyway. Disposing of it ends its clock, which does not keep the process alive.
 */
export class RequestTail implements Disposable {
  readonly #capacity: number;
  readonly #doors: string[];
  readonly #routes: string[];
  readonly #methods: string[];
  readonly #status: Uint16Array;
  readonly #endedAt: Float64Array;
  readonly #duration: Float32Array;
  #number = 0;
  #now = Date.now();
  readonly #clock = setInterval(() => {
    this.#now = Date.now();
  }, CLOCK).unref();

  constructor(capacity = 500) {
    this.#capacity = capacity;
    this.#doors = new Array<string>(capacity).fill('');
    this.#routes = new Array<string>(capacity).fill('');
    this.#methods = new Array<string>(capacity).fill('');
    this.#status = new Uint16Array(capacity);
    this.#endedAt = new Float64Array(capacity);
    this.#duration = new Float32Array(capacity);
  }

  record(door: string, route: string, method: string, status: number, duration: number): void {
    const at = this.#number++ % this.#capacity;
    this.#doors[at] = door;
    this.#routes[at] = route;
    this.#methods[at] = method;
    this.#status[at] = status;
    this.#endedAt[at] = this.#now;
    this.#duration[at] = duration;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#clock);
  }

  /** The latest first. */
  latest(): readonly TailedRequest[] {
    const kept = Math.min(this.#number, this.#capacity);
    return Array.from({ length: kept }, (_, i) => this.#at(this.#number - i));
  }

  #at(number: number): TailedRequest {
    const at = (number - 1) % this.#capacity;
    return {
      number,
      door: this.#doors[at] ?? '',
      route: this.#routes[at] ?? '',
      method: this.#methods[at] ?? '',
      status: this.#status[at] ?? 0,
      endedAt: this.#endedAt[at] ?? 0,
      duration: Math.round((this.#duration[at] ?? 0) * 1_000) / 1_000,
    };
  }
}

/** A reply that took longer was a stream of events, in milliseconds: how long people look is no latency. */
const STREAM = 60_000;

/** Counts the replies of one door; nothing is allocated per reply. */
export class Traffic {
  readonly durations = new LatencyHistogram();
  #replies = 0;
  #errors = 0;

  get replies(): number {
    return this.#replies;
  }

  /** Those of status 500 and above. */
  get errors(): number {
    return this.#errors;
  }

  record(status: number, milliseconds: number): void {
    this.#replies++;
    if (status >= 500) this.#errors++;
    if (milliseconds < STREAM) this.durations.record(milliseconds);
  }
}
