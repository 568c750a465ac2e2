import * as v from 'valibot';
import { isRecord } from '../../core/record.ts';
import { expectedPassword, isPassword } from '../options/password-option.ts';
import { textField, wholeField } from './fields.ts';
import { type Given, itemsOf } from './given.ts';
import { readObject, type Written } from './read-object.ts';

const PASSWORD = `must be ${expectedPassword}`;
const ROLES = 'must be an array of role names';

const userSchema = v.object(
  {
    user: textField(/^[^:\p{Cc}]+$/u, 'must be a text without ":" and control characters, and not empty'),
    password: v.pipe(v.string(PASSWORD), v.check(isPassword, PASSWORD)),
    roles: wholeField(v.array(textField(/^\P{Cc}+$/u, ROLES)), ROLES),
  },
  'must be an object with user, password, roles',
);

/** Somebody who may log in to the management endpoints. */
export type ManagementUser = Written<typeof userSchema>;

/** Reads `management.users`: an array in which each user has one entry. */
export function readUsers(given: Given, problems: string[]): readonly ManagementUser[] {
  const items = itemsOf(given, problems);
  const users = items.flatMap((item) => readObject(userSchema, item, problems) ?? []);
  const names = items.map(({ value }) => (isRecord(value) ? value.user : undefined));
  for (const [index, { path }] of items.entries()) {
    const name = names[index];
    if (typeof name !== 'string' || names.indexOf(name) === index) continue;
    problems.push(`${path}.user is a duplicate; give every user one entry with all roles`);
  }
  return users;
}
