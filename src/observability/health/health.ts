/** Actuator's statuses. OUT_OF_SERVICE: healthy, but takes no requests now. */
export type HealthStatus = 'UP' | 'DOWN' | 'OUT_OF_SERVICE' | 'UNKNOWN';

/** The result of one check. `details` are shown only to those who may see them. */
export interface HealthResult {
  readonly status: HealthStatus;
  readonly details?: Readonly<Record<string, unknown>>;
  /** Parts that can be asked for by name; the status is then aggregated from theirs. */
  readonly components?: Readonly<Record<string, HealthResult>>;
}

/**
 * What a check answers: a code, where 0 is healthy and every other number names the fault; or a whole result, or its
 * parts by name, whose status is aggregated from theirs.
 */
export type CheckAnswer =
  | number
  | HealthResult
  | { readonly components: Readonly<Record<string, CheckAnswer>> };

/** A named health check. One that throws, rejects or takes too long is DOWN. */
export interface HealthIndicator {
  readonly name: string;
  check(signal: AbortSignal): CheckAnswer | Promise<CheckAnswer>;
  /** Timeout in milliseconds; default that of the registry. */
  readonly timeoutMs?: number | undefined;
  /** Time to live of a result, in milliseconds; 0, the default, runs the check for each request. */
  readonly ttlMs?: number | undefined;
  /** Results are kept only until this is aborted. */
  readonly cacheUntil?: AbortSignal | undefined;
  /** False for what the process can do without: its status is shown, but not part of the whole. Default true. */
  readonly critical?: boolean | undefined;
}

/** The results of several checks. `components` are in the order of the checks. */
export interface HealthReport {
  readonly status: HealthStatus;
  readonly components: Readonly<Record<string, HealthResult>>;
}
