import { expectedPassword, isPassword } from '../options/password-option.ts';
import type { CodeKey, ConfigCode, ManagementUser } from './code.ts';
import { readEndpoints } from './module-endpoints.ts';
import { readHandlers } from './module-handlers.ts';
import { readHealthChecks, readHealthGroups } from './module-health.ts';
import { type Given, readItems } from './module-items.ts';

/** Reads the code of a configuration module and says in `problems`, by its path, what is not as it must be. */
export function readModuleCode(
  code: ReadonlyMap<CodeKey, unknown>,
  name: string,
  problems: string[],
): ConfigCode {
  const at = (key: CodeKey) => ({ value: code.get(key), path: `${name}: ${key}` });
  return {
    healthChecks: readHealthChecks(at('management.healthChecks'), problems),
    healthGroups: readHealthGroups(at('management.healthGroups'), at('management.healthChecks'), problems),
    endpoints: readEndpoints(at('management.endpoints'), problems),
    users: users(at('management.users'), problems),
    sources: code.get('webhook.sources'),
    forward: code.get('webhook.forward'),
    handlers: readHandlers(code.get('webhook.handlers'), `${name}: webhook.handlers`, problems),
  };
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
