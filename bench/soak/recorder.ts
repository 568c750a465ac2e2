import { percentile } from '../measure/statistics.ts';

/** Kinds of requests that are measured together. */
export type Group = 'writes' | 'reads' | 'management';

/** The clients' results between two samples. */
export interface Window {
  readonly requests: number;
  readonly errors: number;
  /** Milliseconds, by group; NaN if no request succeeded. */
  readonly p50: Readonly<Record<Group, number>>;
  readonly p99: Readonly<Record<Group, number>>;
}

const GROUPS: readonly Group[] = ['writes', 'reads', 'management'];

/** Counts requests and errors, and keeps latencies until the next sample. */
export class Recorder {
  readonly #errors = new Map<string, number>();
  readonly #counts = new Map<string, number>();
  #latencies = fresh();
  #requests = 0;
  #failed = 0;

  /** Records a successful request by its kind. */
  succeeded(group: Group, kind: string, milliseconds: number): void {
    this.#latencies[group].push(milliseconds);
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1);
    this.#requests++;
  }

  failed(reason: string): void {
    this.#errors.set(reason, (this.#errors.get(reason) ?? 0) + 1);
    this.#requests++;
    this.#failed++;
  }

  /** Successful requests since the start, by kind. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  /** Failed requests since the start, by reason. */
  get errors(): ReadonlyMap<string, number> {
    return this.#errors;
  }

  /** The results since the last call. */
  take(): Window {
    const at = (percent: number) =>
      Object.fromEntries(
        GROUPS.map((group) => [group, percentile(this.#latencies[group], percent)]),
      ) as Record<Group, number>;
    const window = { requests: this.#requests, errors: this.#failed, p50: at(50), p99: at(99) };
    this.#latencies = fresh();
    this.#requests = 0;
    this.#failed = 0;
    return window;
  }
}

function fresh(): Record<Group, number[]> {
  return { writes: [], reads: [], management: [] };
}
