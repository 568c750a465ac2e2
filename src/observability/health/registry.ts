import { ExpectedError } from '../../core/expected-error.ts';
import { type BoundedCheck, boundedCheck, type OnChecked } from './bounded-check.ts';
import { cachedCheck } from './cached-check.ts';
import type { HealthIndicator, HealthReport, HealthResult } from './health.ts';
import { aggregateStatus } from './status.ts';

export interface HealthRegistryOptions {
  /** Default timeout of a check, in milliseconds; default 5,000. */
  readonly timeoutMs?: number;
  /** Called after each run of a check. */
  readonly onChecked?: OnChecked;
  /** Monotonic clock in milliseconds, for cached results. */
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

/** The health checks by name. They run concurrently, each with a timeout. */
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

  /** A registry with additional checks. Both share the existing ones, whose runs never overlap. */
  with(indicators: readonly HealthIndicator[]): HealthRegistry {
    return new HealthRegistry(indicators, {}, this);
  }

  /** Runs the named checks, by default all; never rejects, and takes no longer than the longest timeout. */
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
        // Shows why the aggregate is not DOWN.
        return [name, critical ? result : { ...result, details: { critical: false, ...result.details } }];
      }),
    ),
  };
}
