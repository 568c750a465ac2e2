import type { Sample } from './samples.ts';

/** A fault as it happened. */
export interface FaultRecord {
  readonly name: string;
  /** Seconds since the start. */
  readonly at: number;
  /** Milliseconds from the beginning of the fault until a write was acknowledged again; NaN when the run ended before. */
  readonly recoveredMs: number;
}

/** Everything that a run found out. */
export interface Outcome {
  readonly engine: 'sqlite' | 'postgres';
  readonly command: string;
  readonly machine: string;
  readonly date: string;
  readonly seconds: number;
  readonly samples: readonly Sample[];
  readonly faults: readonly FaultRecord[];
  /** Ends of processes that nobody asked for. */
  readonly ends: readonly string[];
  readonly counts: ReadonlyMap<string, number>;
  readonly errors: ReadonlyMap<string, number>;
  readonly audit: AuditResult;
}

/** What the comparison of the store with what clients were told has shown. */
export interface AuditResult {
  readonly users: number;
  readonly deliveries: number;
  /** Deliveries whose handlers ended more than once, which a fault may cause. */
  readonly handledAgain: number;
  /** What was wrong; nothing is the proof. */
  readonly problems: readonly string[];
}
