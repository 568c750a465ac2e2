import { quote } from '../../core/quote.ts';
import { comparableEndpointId, endpointIdPattern, takenEndpoints } from '../options/endpoint-id.ts';
import { type CustomEndpoint, parseParameter } from './custom-endpoint.ts';
import { type Given, readItems } from './module-items.ts';

const OPERATIONS = ['read', 'write', 'delete'] as const;
const KEYS = ['id', 'path', 'query', ...OPERATIONS];
const PARAMETER = 'a name of letters, digits and "_", with "?" behind it when it may be left out';

/** Reads `management.endpoints`: an array of endpoints of the user's own. */
export function readEndpoints(given: Given, problems: string[]): readonly CustomEndpoint[] {
  const taken = new Map<string, string>(
    takenEndpoints.map((id) => [comparableEndpointId(id), `the built-in ${id}`]),
  );
  return readItems(given, KEYS, problems, (entry, at) => {
    const before = problems.length;
    checkId(entry.get('id'), at, taken, problems);
    checkParameters(entry, at, problems);
    checkOperations(entry, at, problems);
    // Nothing is wrong with it, so it is one.
    return problems.length === before ? (Object.fromEntries(entry) as CustomEndpoint) : undefined;
  });
}

function checkId(id: unknown, at: string, taken: Map<string, string>, problems: string[]): void {
  if (typeof id !== 'string' || !endpointIdPattern.test(id)) {
    problems.push(`${at}.id must begin with a lower-case letter and have only letters, digits, "." and "-"`);
    return;
  }
  const same = taken.get(comparableEndpointId(id));
  if (same === undefined) taken.set(comparableEndpointId(id), `${at}.id`);
  else problems.push(`${at}.id ${quote(id)} names the same endpoint as ${same}; rename it`);
}

function checkParameters(entry: ReadonlyMap<string, unknown>, at: string, problems: string[]): void {
  const path = entry.get('path');
  if (path !== undefined && parseParameter(path) === undefined) {
    problems.push(`${at}.path must be ${PARAMETER}`);
  }
  const query: unknown = entry.get('query') ?? [];
  const names = Array.isArray(query)
    ? Array.from<unknown>(query).map((text) => parseParameter(text)?.name)
    : [undefined];
  if (names.includes(undefined) || new Set(names).size !== names.length) {
    problems.push(`${at}.query must be an array, each item ${PARAMETER}, and no name twice`);
  }
}

function checkOperations(entry: ReadonlyMap<string, unknown>, at: string, problems: string[]): void {
  const given = OPERATIONS.filter((name) => entry.has(name));
  if (given.length === 0) problems.push(`${at} must have at least one of ${OPERATIONS.join(', ')}`);
  for (const name of given) {
    if (typeof entry.get(name) !== 'function') problems.push(`${at}.${name} must be a function`);
  }
}
