import type { CodeCheck } from '../observability/code-check.ts';
import type { CodeKey, ConfigCode, ManagementUser } from './code.ts';
import { readEndpoints } from './module-endpoints.ts';
import { readHandlers } from './module-handlers.ts';
import { type Given, readItems } from './module-items.ts';
import { expectedPassword, isPassword } from './password-option.ts';
import { quote } from './quote.ts';
import { entriesOf, isRecord } from './record.ts';

/** Reads the code of a configuration module and says in `problems`, by its path, what is not as it must be. */
export function readModuleCode(
  code: ReadonlyMap<CodeKey, unknown>,
  name: string,
  problems: string[],
): ConfigCode {
  const at = (key: CodeKey) => ({ value: code.get(key), path: `${name}: ${key}` });
  return {
    healthChecks: functions<CodeCheck>(at('management.healthChecks'), /^[A-Za-z][\w.-]*$/, problems),
    endpoints: readEndpoints(at('management.endpoints'), problems),
    users: users(at('management.users'), problems),
    handlers: readHandlers(code.get('webhook.handlers'), `${name}: webhook.handlers`, problems),
  };
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

function users(given: Given, problems: string[]): readonly ManagementUser[] {
  const taken = new Set<string>();
  return readItems(given, ['user', 'password', 'roles'], problems, (entry, at) => {
    const user = entry.get('user');
    const password = entry.get('password');
    const roles = entry.get('roles');
    const named = isText(user) && !user.includes(':');
    if (!named) problems.push(`${at}.user must be a text without ":" and control characters, and not empty`);
    else if (taken.has(user))
      problems.push(`${at}.user is there already; give every user one entry with all roles`);
    else taken.add(user);
    const secured = isText(password) && isPassword(password);
    if (!secured) problems.push(`${at}.password must be ${expectedPassword}`);
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
