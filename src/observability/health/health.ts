/** The statuses of Actuator. OUT_OF_SERVICE: healthy, but accepts no work now. */
export type HealthStatus = 'UP' | 'DOWN' | 'OUT_OF_SERVICE' | 'UNKNOWN';

/** The result of a check. `details` are shown to authorised readers. */
export interface HealthResult {
  readonly status: HealthStatus;
  readonly details?: Readonly<Record<string, unknown>>;
  /** Named parts that have paths of their own; `status` is then aggregated from them. */
  readonly components?: Readonly<Record<string, HealthResult>>;
}

/** A named check. It is DOWN when it throws, rejects or times out. */
export interface HealthIndicator {
  readonly name: string;
  check(signal: AbortSignal): HealthResult | Promise<HealthResult>;
  /** Timeout in milliseconds; default: the timeout of the registry. */
  readonly timeoutMs?: number | undefined;
  /** How long a result is cached, in milliseconds; default 0, no cache. */
  readonly ttlMs?: number | undefined;
  /** Whether its status counts for the aggregate; false for optional dependencies, default true. */
  readonly critical?: boolean | undefined;
}

/** The aggregated result of several checks. `components` are in the order of the checks. */
export interface HealthReport {
  readonly status: HealthStatus;
  readonly components: Readonly<Record<string, HealthResult>>;
}
