import { isRecord } from '../../core/record.ts';
import { builtInChecks, builtInGroups, processStates } from '../options/health-names.ts';
import { type Given, type Named, namedOf } from './given.ts';
import { type ConfiguredCheck, checkSchema, groupSchema, type HealthGroupOptions } from './health-code.ts';
import { readObject } from './read-object.ts';

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
