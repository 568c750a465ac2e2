import type { CodeCheck } from '../../observability/health/code-check.ts';
import type { ShowDetails } from '../options/health-names.ts';

/** A health check of the user's own, with how it is run. */
export interface ConfiguredCheck {
  readonly check: CodeCheck;
  /** How long it may take, in milliseconds; default 5,000. Afterwards it is DOWN, and its signal is aborted. */
  readonly timeout?: number | undefined;
  /**
   * How long a result is good for, in milliseconds; default 0: each request checks. Afterwards the old result is
   * served while the check runs, up to ten times as long.
   */
  readonly ttl?: number | undefined;
  /** False for what the service can do without: its own status is shown, but the whole does not follow it. Default true. */
  readonly critical?: boolean | undefined;
}

/** A choice of health checks under a name of its own. */
export interface HealthGroupOptions {
  /** Names of checks, or `*` for all of /health; also `livenessState` and `readinessState`. */
  readonly include: readonly string[];
  /** Wins over `include`. */
  readonly exclude?: readonly string[] | undefined;
  /** What holds for /health when absent. */
  readonly showDetails?: ShowDetails | undefined;
}
