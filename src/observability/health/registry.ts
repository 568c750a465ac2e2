import type { MaybePromise } from '../../core/maybe-promise.ts';
import { type BoundedCheck, boundedCheck, type OnChecked } from './bounded-check.ts';
import { cachedCheck } from './cached-check.ts';
import type { HealthIndicator, HealthReport, HealthResult } from './health.ts';
import { aggregateStatus } from './status.ts';

interface HealthRegistryOptions {
  /** Timeout of a check without its own, in milliseconds; default 5,000. */
  readonly timeoutMs?: number;
  /** Called for each run of a check. */
  readonly onChecked?: OnChecked;
  /** The clock for the time to live of results, in milliseconds; monotonic. */
  readonly now?: () => number;
}

/** Two checks have one name, or one has none; the start fails with this message. */
export class HealthCheckNameError extends Error {
  override readonly name = 'HealthCheckNameError';
  readonly code = 'HEALTH_CHECK_NAME';
}

const UNKNOWN: HealthResult = { status: 'UNKNOWN' };

interface Member {
  readonly name: string;
  readonly critical: boolean;
  readonly check: BoundedCheck;
}

/** Health checks by name. They run side by side, each with a timeout. */
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
      const { name, critical = true, ttlMs = 0, cacheUntil } = indicator;
      if (name === '' || members.has(name)) {
        throw new HealthCheckNameError(
          `The health check name ${JSON.stringify(name)} is empty or used twice. Give each check a name of its own.`,
        );
      }
      const bounded = boundedCheck(indicator, indicator.timeoutMs ?? timeoutMs, onChecked);
      members.set(name, { name, critical, check: cachedCheck(bounded, { ttlMs, now, cacheUntil }) });
    }
    this.#members = members;
    this.names = [...members.keys()];
  }

  /** This registry with more checks; both share the results of those that it has already. */
  with(indicators: readonly HealthIndicator[]): HealthRegistry {
    return new HealthRegistry(indicators, {}, this);
  }

  /** Runs the checks of these names, all of them by default; see `group`. */
  check(names: readonly string[] = this.names): MaybePromise<HealthReport> {
    return this.group(names)();
  }

  /**
   * Runs the checks of these names side by side whenever it is called; never rejects, and takes no longer than the
   * slowest timeout. The report is the same object until a result is another one.
   */
  group(names: readonly string[]): () => MaybePromise<HealthReport> {
    const members = names.flatMap((name) => this.#members.get(name) ?? []);
    let last: HealthReport | undefined;
    let lastResults: readonly HealthResult[] = [];
    function settle(results: readonly HealthResult[]): HealthReport {
      if (last !== undefined && results.every((result, i) => result === lastResults[i])) return last;
      lastResults = results;
      last = report(members, results);
      return last;
    }
    return () => {
      const results = members.map(({ check }) => check());
      return results.some((result) => result instanceof Promise)
        ? Promise.all(results).then(settle)
        : settle(results as HealthResult[]);
    };
  }
}

function report(members: readonly Member[], results: readonly HealthResult[]): HealthReport {
  const all = members.map((member, i) => ({ ...member, result: results[i] ?? UNKNOWN }));
  return {
    status: aggregateStatus(all.filter(({ critical }) => critical).map(({ result }) => result.status)),
    components: Object.fromEntries(
      all.map(({ name, critical, result }) => [
        name,
        // Explains a part that is DOWN in a whole that is not.
        critical ? result : { ...result, details: { critical: false, ...result.details } },
      ]),
    ),
  };
}
