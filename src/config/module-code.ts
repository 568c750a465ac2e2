import type { DeliveryHandler } from '../inbox/handler.ts';
import type { CodeCheck } from '../observability/code-check.ts';
import type { CodeKey, ConfigCode, CustomEndpoint, ManagementUser } from './code.ts';
import { builtInEndpoints, comparableEndpointId, endpointIdPattern } from './endpoint-id.ts';
import { quote } from './quote.ts';
import { entriesOf, isRecord, unknownKey } from './record.ts';

/** Reads the code of a configuration module and says in `problems`, by its path, what is not as it must be. */
export function readModuleCode(
  code: ReadonlyMap<CodeKey, unknown>,
  name: string,
  problems: string[],
): ConfigCode {
  const at = (key: CodeKey) => ({ value: code.get(key), path: `${name}: ${key}` });
  return {
    healthChecks: functions<CodeCheck>(at('management.healthChecks'), /^[A-Za-z][\w.-]*$/, problems),
    endpoints: endpoints(at('management.endpoints'), problems),
    users: users(at('management.users'), problems),
    handlers: functions<DeliveryHandler>(at('webhook.handlers'), /^/, problems),
  };
}

interface Given {
  readonly value: unknown;
  readonly path: string;
}

/** Functions by name. */
function functions<F>({ value, path }: Given, names: RegExp, problems: string[]): ReadonlyMap<string, F> {
  const read = new Map<string, F>();
  if (value === undefined) return read;
  if (!isRecord(value)) {
    problems.push(`${path} must be an object of functions`);
    return read;
  }
  for (const [key, entry] of entriesOf(value)) {
    const at = /^[\w-]+$/.test(key) ? `${path}.${key}` : `${path}[${quote(key)}]`;
    if (!isFunction<F>(entry)) problems.push(`${at} must be a function`);
    else if (!names.test(key)) problems.push(`${at} must have a name of letters, digits, ".", "_" and "-"`);
    else read.set(key, entry);
  }
  return read;
}

function endpoints(given: Given, problems: string[]): readonly CustomEndpoint[] {
  const taken = new Map<string, string>(
    builtInEndpoints.map((id) => [comparableEndpointId(id), `the built-in ${id}`]),
  );
  return items(given, ['id', 'read'], problems, (entry, at) => {
    const id = entry.get('id');
    const read = entry.get('read');
    const named = typeof id === 'string' && endpointIdPattern.test(id);
    if (!named) {
      problems.push(
        `${at}.id must begin with a lower-case letter and have only letters, digits, "." and "-"`,
      );
    } else {
      const same = taken.get(comparableEndpointId(id));
      if (same !== undefined)
        problems.push(`${at}.id ${quote(id)} names the same endpoint as ${same}; rename it`);
      else taken.set(comparableEndpointId(id), `${at}.id`);
    }
    if (!isFunction<CustomEndpoint['read']>(read)) problems.push(`${at}.read must be a function`);
    else if (named) return { id, read };
    return undefined;
  });
}

function users(given: Given, problems: string[]): readonly ManagementUser[] {
  const taken = new Set<string>();
  return items(given, ['user', 'password', 'roles'], problems, (entry, at) => {
    const user = entry.get('user');
    const password = entry.get('password');
    const roles = entry.get('roles');
    const named = isText(user) && !user.includes(':');
    if (!named) problems.push(`${at}.user must be a text without ":" and control characters, and not empty`);
    else if (taken.has(user))
      problems.push(`${at}.user is there already; give every user one entry with all roles`);
    else taken.add(user);
    const secured = isText(password);
    if (!secured) problems.push(`${at}.password must be a text without control characters, and not empty`);
    const listed = Array.isArray(roles) && Array.from<unknown>(roles).every(isText);
    if (!listed) problems.push(`${at}.roles must be an array of role names`);
    return named && secured && listed ? { user, password, roles: [...roles] } : undefined;
  });
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && /^\P{Cc}+$/u.test(value);
}

/** What else the function is cannot be seen before it is called. */
function isFunction<F>(value: unknown): value is F {
  return typeof value === 'function';
}

/** Reads an array of objects with certain fields; what `read` cannot use it puts among the problems itself. */
function items<T>(
  { value, path }: Given,
  fields: readonly string[],
  problems: string[],
  read: (entry: ReadonlyMap<string, unknown>, at: string) => T | undefined,
): readonly T[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) {
    problems.push(`${path} must be an array`);
    return [];
  }
  return Array.from(value).flatMap((entry, index) => {
    const at = `${path}[${index}]`;
    if (!isRecord(entry)) {
      problems.push(`${at} must be an object with ${fields.join(', ')}`);
      return [];
    }
    const entries = new Map(entriesOf(entry));
    for (const key of entries.keys()) {
      if (!fields.includes(key)) problems.push(unknownKey(at, key, fields));
    }
    return read(entries, at) ?? [];
  });
}
