import { HistoryRing } from './history-ring.ts';
import type { HistorySource } from './history-source.ts';

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

export type HistoryWindow = keyof typeof RESOLUTIONS;

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
  readonly #sources: readonly HistorySource[];
  readonly #rings: ReadonlyMap<HistoryWindow, HistoryRing>;
  readonly #listeners = new Set<() => void>();
  readonly #now: () => number;
  readonly #timer: NodeJS.Timeout;

  constructor(sources: readonly HistorySource[], now: () => number = Date.now) {
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
