import { ExpectedError } from '../../core/expected-error.ts';
import { type BoundedCheck, boundedCheck, type OnChecked } from './bounded-check.ts';
import { cachedCheck } from './cached-check.ts';
import type { HealthIndicator, HealthReport, HealthResult } from './health.ts';
import { aggregateStatus } from './status.ts';

export interface HealthRegistryOptions {
  /** How long one check may take unless it says so itself, in milliseconds; 5,000 when absent. */
  readonly timeoutMs?: number;
  /** Told of each run of a check. */
  readonly onChecked?: OnChecked;
  /** The clock for the time to live of results, in milliseconds; it never goes back. */
  readonly now?: () => number;
}

/** Two checks have one name, or one has none; the start ends with this message. */
export class HealthCheckNameError extends ExpectedError {
  override readonly name = 'HealthCheckNameError';
  readonly code = 'HEALTH_CHECK_NAME';
}

interface Member {
  readonly name: string;
  readonly critical: boolean;
  readonly check: BoundedCheck;
}

/** Health checks by name. They run side by side, and none of them can hold up an answer. */
export class HealthRegistry {
  readonly #members: ReadonlyMap<string, Member>;
  /** All names, in the order of the checks. */
  readonly names: readonly string[];

  /** Throws HealthCheckNameError unless every indicator has a name of its own. */
  constructor(
    indicators: readonly HealthIndicator[],
    options: HealthRegistryOptions = {},
    base?: HealthRegistry,
  ) {
    const { timeoutMs = 5_000, onChecked, now = () => performance.now() } = options;
    const members = new Map<string, Member>(base === undefined ? [] : base.#members);
    for (const indicator of indicators) {
      const { name, critical = true, ttlMs = 0 } = indicator;
      if (name === '' || members.has(name)) {
        throw new HealthCheckNameError(
          `The health check name ${JSON.stringify(name)} is empty or used twice. Give each check a name of its own.`,
        );
      }
      const bounded = boundedCheck(indicator, indicator.timeoutMs ?? timeoutMs, onChecked);
      members.set(name, { name, critical, check: cachedCheck(bounded, ttlMs, now) });
    }
    this.#members = members;
    this.names = [...members.keys()];
  }

  /** This registry with more checks; those that it has already still run once at a time, whoever asks. */
  with(indicators: readonly HealthIndicator[]): HealthRegistry {
    return new HealthRegistry(indicators, {}, this);
  }

  /** Runs the checks of these names, all of them by default; never rejects, and takes no longer than the slowest time-out. */
  check(names: readonly string[] = this.names): Promise<HealthReport> {
    const members: Member[] = [];
    const results: (HealthResult | Promise<HealthResult>)[] = [];
    let waiting = false;
    for (const name of names) {
      const member = this.#members.get(name);
      if (member === undefined) continue;
      const result = member.check();
      if (result instanceof Promise) waiting = true;
      members.push(member);
      results.push(result);
    }
    if (waiting) return Promise.all(results).then((settled) => report(members, settled));
    return Promise.resolve(report(members, results as HealthResult[]));
  }
}

function report(members: readonly Member[], results: readonly HealthResult[]): HealthReport {
  const statuses = results.map(({ status }) => status);
  return {
    status: aggregateStatus(statuses.filter((_, i) => members[i]?.critical)),
    components: Object.fromEntries(
      members.map(({ name, critical }, i) => {
        const result = results[i] ?? { status: 'UNKNOWN' };
        // Who reads that a part is DOWN and the whole is not sees why.
        return [name, critical ? result : { ...result, details: { critical: false, ...result.details } }];
      }),
    ),
  };
}
