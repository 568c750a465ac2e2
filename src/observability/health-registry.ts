import { type BoundedCheck, boundedCheck } from './bounded-check.ts';
import type { HealthIndicator, HealthReport, HealthResult } from './health.ts';

export interface HealthRegistryOptions {
  /** How long one check may take, in milliseconds; 5,000 when absent. */
  readonly timeoutMs?: number;
}

/** Two checks have one name, or one has none; the start ends with this message. */
export class HealthCheckNameError extends Error {
  override readonly name = 'HealthCheckNameError';
  readonly code = 'HEALTH_CHECK_NAME';
}

/** All health checks of the process. They run side by side, and none of them can hold up an answer. */
export class HealthRegistry {
  readonly #checks: readonly (readonly [name: string, check: BoundedCheck])[];

  /** Throws HealthCheckNameError unless every indicator has a name of its own. */
  constructor(indicators: readonly HealthIndicator[], { timeoutMs = 5_000 }: HealthRegistryOptions = {}) {
    const names = new Set<string>();
    for (const { name } of indicators) {
      if (name === '' || names.has(name)) {
        throw new HealthCheckNameError(
          `The health check name ${JSON.stringify(name)} is empty or used twice. Give each check a name of its own.`,
        );
      }
      names.add(name);
    }
    this.#checks = indicators.map((indicator) => [indicator.name, boundedCheck(indicator, timeoutMs)]);
  }

  /** Runs every check; never rejects, and takes no longer than the time-out of one check. */
  check(): Promise<HealthReport> {
    const results: (HealthResult | Promise<HealthResult>)[] = [];
    let waiting = false;
    for (const [, check] of this.#checks) {
      const result = check();
      if (result instanceof Promise) waiting = true;
      results.push(result);
    }
    if (waiting) return Promise.all(results).then((settled) => this.#report(settled));
    return Promise.resolve(this.#report(results as HealthResult[]));
  }

  #report(results: readonly HealthResult[]): HealthReport {
    return {
      status: results.every(({ status }) => status === 'UP') ? 'UP' : 'DOWN', // contract 3
      components: Object.fromEntries(results.map((result, i) => [this.#checks[i]?.[0], result])),
    };
  }
}
