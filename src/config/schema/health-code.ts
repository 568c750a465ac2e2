import * as v from 'valibot';
import { describeValue } from '../../core/quote.ts';
import { isRecord } from '../../core/record.ts';
import { didYouMean } from '../../core/suggest.ts';
import type { HealthIndicator } from '../../observability/health/health.ts';
import { builtInChecks, builtInGroups, processStates, showDetailsChoices } from '../options/health-names.ts';
import { functionField, toggleField, wholeNumberField } from './fields.ts';
import { type Given, type Named, namedOf } from './given.ts';
import { readObject, type Written } from './read-object.ts';

const DAY = 86_400_000;
const milliseconds = (min: number) =>
  wholeNumberField(min, DAY, `must be a whole number from ${min} to ${DAY} (milliseconds)`);

const checkSchema = v.object(
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
function groupSchema(known: readonly string[]) {
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

const reserved: readonly string[] = [...builtInChecks, ...processStates, ...builtInGroups];

/** Reads `management.healthChecks`: by name a function, or an object with a function and how it runs. */
export function readHealthChecks(given: Given, problems: string[]): ReadonlyMap<string, ConfiguredCheck> {
  const read = namedOf(given, 'checks by name', problems).flatMap((entry) => {
    const value = typeof entry.value === 'function' ? { check: entry.value } : entry.value;
    const check = readObject(checkSchema, { ...entry, value }, problems);
    const named = isNamed(entry, problems);
    const free = !reserved.includes(entry.name);
    if (!free) problems.push(`${entry.path} has a name that Portico uses itself; rename it`);
    return check !== undefined && named && free ? [[entry.name, check] as const] : [];
  });
  return new Map(read);
}

/** Reads `management.healthGroups`. `checks` is `management.healthChecks`, whose names are members of groups. */
export function readHealthGroups(
  given: Given,
  checks: Given,
  problems: string[],
): ReadonlyMap<string, HealthGroupOptions> {
  const own = isRecord(checks.value) ? Object.keys(checks.value) : [];
  const known = [...builtInChecks, ...processStates, ...own];
  const schema = groupSchema(known);
  const read = namedOf(given, 'groups by name', problems).flatMap((entry) => {
    const named = isNamed(entry, problems);
    const free = !known.includes(entry.name);
    if (!free) problems.push(`${entry.path} has the name of a health check; rename one of them`);
    const group = readObject(schema, entry, problems);
    return group !== undefined && named && free ? [[entry.name, group] as const] : [];
  });
  return new Map(read);
}

function isNamed({ name, path }: Named, problems: string[]): boolean {
  const named = /^[A-Za-z][\w.-]*$/.test(name);
  if (!named) problems.push(`${path} must have a name of letters, digits, ".", "_" and "-"`);
  return named;
}
