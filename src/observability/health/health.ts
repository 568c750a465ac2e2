/** As Actuator has them. OUT_OF_SERVICE: well, but not to be used now. UNKNOWN: nothing can be said. */
export type HealthStatus = 'UP' | 'DOWN' | 'OUT_OF_SERVICE' | 'UNKNOWN';

/** What one check found. `details` are shown to those who may see them. */
export interface HealthResult {
  readonly status: HealthStatus;
  readonly details?: Readonly<Record<string, unknown>>;
  /** What it is made of, if it has parts that can be asked for by name; the status is then theirs taken together. */
  readonly components?: Readonly<Record<string, HealthResult>>;
}

/** One named thing that is checked. A check that throws, rejects or takes too long is DOWN. */
export interface HealthIndicator {
  readonly name: string;
  check(signal: AbortSignal): HealthResult | Promise<HealthResult>;
  /** How long the check may take, in milliseconds; what the registry says when absent. */
  readonly timeoutMs?: number | undefined;
  /** How long a result is good for, in milliseconds; 0, the default, checks each time somebody asks. */
  readonly ttlMs?: number | undefined;
  /** False for what the process can do without: its own status is shown, but the whole does not follow it. Default true. */
  readonly critical?: boolean | undefined;
}

/** What several checks found. `components` are in the order of the checks. */
export interface HealthReport {
  readonly status: HealthStatus;
  readonly components: Readonly<Record<string, HealthResult>>;
}
