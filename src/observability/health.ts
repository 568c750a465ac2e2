/** What one check found. `details` are shown to those who may see them. */
export interface HealthResult {
  readonly status: 'UP' | 'DOWN';
  readonly details?: Readonly<Record<string, unknown>>;
}

/** One named thing that is checked. A check that throws, rejects or takes too long is DOWN. */
export interface HealthIndicator {
  readonly name: string;
  check(signal: AbortSignal): HealthResult | Promise<HealthResult>;
}

/** What all checks found: DOWN as soon as one is (contract 3). `components` are in the order of the checks. */
export interface HealthReport {
  readonly status: 'UP' | 'DOWN';
  readonly components: Readonly<Record<string, HealthResult>>;
}
