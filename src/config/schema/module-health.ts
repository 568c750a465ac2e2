import { describeValue, quote } from '../../core/quote.ts';
import { entriesOf, isRecord, unknownKey } from '../../core/record.ts';
import { didYouMean } from '../../core/suggest.ts';
import type { CodeCheck } from '../../observability/health/code-check.ts';
import { builtInChecks, builtInGroups, processStates, showDetailsChoices } from '../options/health-names.ts';
import type { ConfiguredCheck, HealthGroupOptions } from './health-code.ts';
import type { Given } from './module-items.ts';

const CHECK_KEYS = ['check', 'timeout', 'ttl', 'critical'];
const GROUP_KEYS = ['include', 'exclude', 'showDetails'];
const NAME = /^[A-Za-z][\w.-]*$/;
/** A day. */
const LONGEST = 86_400_000;
const TAKEN: readonly string[] = [...builtInChecks, ...processStates, ...builtInGroups];

type Entries = ReadonlyMap<string, unknown>;

/** Reads `management.healthChecks`: by name a function, or an object with a function and how it is run. */
export function readHealthChecks(given: Given, problems: string[]): ReadonlyMap<string, ConfiguredCheck> {
  const read = new Map<string, ConfiguredCheck>();
  for (const [name, entry] of named(given, 'checks', problems)) {
    const at = pathOf(given, name);
    const before = problems.length;
    const check = isCheck(entry) ? { check: entry } : checkOf(entry, at, problems);
    if (!NAME.test(name)) problems.push(`${at} must have a name of letters, digits, ".", "_" and "-"`);
    if (TAKEN.includes(name)) problems.push(`${at} has a name that Portico uses itself; rename it`);
    if (check !== undefined && problems.length === before) read.set(name, check);
  }
  return read;
}

function checkOf(entry: unknown, at: string, problems: string[]): ConfiguredCheck | undefined {
  if (!isRecord(entry)) {
    problems.push(`${at} must be a function, or an object with a function as its "check"`);
    return undefined;
  }
  const fields: Entries = new Map(entriesOf(entry));
  refuseUnknown(fields, CHECK_KEYS, at, problems);
  if (!isCheck(fields.get('check'))) problems.push(`${at}.check must be a function`);
  for (const [key, least] of [
    ['timeout', 1],
    ['ttl', 0],
  ] as const) {
    const value = fields.get(key);
    if (
      value === undefined ||
      (Number.isInteger(value) && Number(value) >= least && Number(value) <= LONGEST)
    )
      continue;
    problems.push(`${at}.${key} must be a whole number from ${least} to ${LONGEST} (milliseconds)`);
  }
  const critical = fields.get('critical');
  if (critical !== undefined && typeof critical !== 'boolean') {
    problems.push(`${at}.critical must be true or false`);
  }
  // What is no such thing is among the problems.
  return Object.fromEntries(fields) as unknown as ConfiguredCheck;
}

/** Reads `management.healthGroups`. `checks` is what `management.healthChecks` holds: groups are made of them. */
export function readHealthGroups(
  given: Given,
  checks: Given,
  problems: string[],
): ReadonlyMap<string, HealthGroupOptions> {
  const own = isRecord(checks.value) ? Object.keys(checks.value) : [];
  const known = [...builtInChecks, ...processStates, ...own];
  const read = new Map<string, HealthGroupOptions>();
  for (const [name, entry] of named(given, 'groups', problems)) {
    const at = pathOf(given, name);
    const before = problems.length;
    if (!NAME.test(name)) problems.push(`${at} must have a name of letters, digits, ".", "_" and "-"`);
    if (known.includes(name)) problems.push(`${at} has the name of a health check; rename one of them`);
    const fields: Entries = new Map(isRecord(entry) ? entriesOf(entry) : []);
    if (!isRecord(entry)) problems.push(`${at} must be an object with include`);
    else checkGroup(fields, at, known, problems);
    if (problems.length === before)
      read.set(name, Object.fromEntries(fields) as unknown as HealthGroupOptions);
  }
  return read;
}

function checkGroup(fields: Entries, at: string, known: readonly string[], problems: string[]): void {
  refuseUnknown(fields, GROUP_KEYS, at, problems);
  for (const key of ['include', 'exclude'] as const) {
    const names = fields.get(key) ?? (key === 'exclude' ? [] : undefined);
    if (!Array.isArray(names) || (key === 'include' && names.length === 0)) {
      problems.push(
        `${at}.${key} must be an array of health checks${key === 'include' ? ', at least one' : ''}`,
      );
      continue;
    }
    for (const [index, name] of Array.from<unknown>(names).entries()) {
      if (name === '*' || known.includes(String(name))) continue;
      const hint = typeof name === 'string' ? didYouMean(name, known) : '';
      problems.push(`${at}.${key}[${index}] ${describeValue(name)} is no health check${hint}`);
    }
  }
  const showDetails = fields.get('showDetails');
  if (showDetails !== undefined && !showDetailsChoices.some((choice) => choice === showDetails)) {
    problems.push(`${at}.showDetails must be one of ${showDetailsChoices.join(', ')}`);
  }
}

function named({ value, path }: Given, what: string, problems: string[]): readonly [string, unknown][] {
  if (value === undefined) return [];
  if (isRecord(value)) return entriesOf(value);
  problems.push(`${path} must be an object of ${what} by name`);
  return [];
}

function refuseUnknown(fields: Entries, keys: readonly string[], at: string, problems: string[]): void {
  for (const key of fields.keys()) if (!keys.includes(key)) problems.push(unknownKey(at, key, keys));
}

function pathOf({ path }: Given, name: string): string {
  return /^[\w-]+$/.test(name) ? `${path}.${name}` : `${path}[${quote(name)}]`;
}

/** What else the function is cannot be seen before it is called. */
function isCheck(value: unknown): value is CodeCheck {
  return typeof value === 'function';
}
