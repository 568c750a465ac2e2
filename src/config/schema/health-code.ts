import * as v from 'valibot';
import { describeValue } from '../../core/quote.ts';
import { didYouMean } from '../../core/suggest.ts';
import type { HealthIndicator } from '../../observability/health/health.ts';
import { showDetailsChoices } from '../options/health-names.ts';
import { functionField, toggleField, wholeNumberField } from './fields.ts';
import type { Written } from './read-object.ts';

const DAY = 86_400_000;
const milliseconds = (min: number) =>
  wholeNumberField(min, DAY, `must be a whole number from ${min} to ${DAY} (milliseconds)`);

export const checkSchema = v.object(
  {
    check: functionField<HealthIndicator['check']>(),
    /** Timeout in milliseconds, default 5,000; then the check is DOWN and its signal is aborted. */
    timeout: v.optional(milliseconds(1)),
    /**
     * How long a result is cached, in milliseconds; default 0: each request runs the check. A stale result is served
     * while the check runs, for up to ten times as long.
     */
    ttl: v.optional(milliseconds(0)),
    /** False to keep its status out of the overall health. Default true. */
    critical: v.optional(toggleField),
  },
  'must be a function, or an object with a function as its "check"',
);

/** A custom health check and how it runs. */
export type ConfiguredCheck = Written<typeof checkSchema>;

/** A group whose members are among `known`, the names of all checks. */
export function groupSchema(known: readonly string[]) {
  const member = v.custom<string>(
    (value) => typeof value === 'string' && (value === '*' || known.includes(value)),
    ({ input }) => {
      const hint = typeof input === 'string' ? didYouMean(input, known) : '';
      return `${describeValue(input)} is no health check${hint}`;
    },
  );
  const include = 'must be an array of health checks, at least one';
  return v.object(
    {
      /** Names of checks, or `*` for all of /health; also `livenessState` and `readinessState`. */
      include: v.pipe(v.array(member, include), v.minLength(1, include)),
      /** Takes precedence over `include`. */
      exclude: v.optional(v.array(member, 'must be an array of health checks')),
      /** Who sees the details; as for /health when absent. */
      showDetails: v.optional(
        v.picklist(showDetailsChoices, `must be one of ${showDetailsChoices.join(', ')}`),
      ),
    },
    'must be an object with include',
  );
}

/** A named set of health checks. */
export type HealthGroupOptions = Written<ReturnType<typeof groupSchema>>;
