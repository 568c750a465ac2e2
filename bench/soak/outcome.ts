import type { Sample } from './samples.ts';

/** A fault that was injected. */
export interface FaultRecord {
  readonly name: string;
  /** Seconds since the start. */
  readonly at: number;
  /**
   * Milliseconds from the beginning of the fault to the next acknowledged write; NaN if the run ended before.
   */
  readonly recoveredMs: number;
}

/** All findings of a run. */
export interface Outcome {
  readonly engine: 'sqlite' | 'postgres';
  readonly command: string;
  readonly machine: string;
  readonly date: string;
  readonly seconds: number;
  readonly samples: readonly Sample[];
  readonly faults: readonly FaultRecord[];
  /** Unexpected ends of processes. */
  readonly ends: readonly string[];
  readonly counts: ReadonlyMap<string, number>;
  readonly errors: ReadonlyMap<string, number>;
  readonly audit: AuditResult;
}

/** The result of comparing the store with the acknowledgements. */
export interface AuditResult {
  readonly users: number;
  readonly deliveries: number;
  /** Deliveries that were handled more than once, which a fault may cause. */
  readonly handledAgain: number;
  /** The problems found; an empty list is the proof. */
  readonly problems: readonly string[];
}
