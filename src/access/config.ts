import * as v from 'valibot';
import { SCOPE } from '../config/options/access.ts';
import {
  type Given,
  itemsOf,
  readObject,
  textField,
  type Written,
  wholeField,
} from '../config/schema/fields.ts';
import { secretsSchema } from '../config/secrets.ts';
import { isRecord } from '../core/json.ts';
import { expectedPassword, isPassword } from '../core/passwords.ts';

const SCOPES = 'must be an array of scopes, like ["users:read"]';
const EXPIRES = 'must be a date like 2027-01-31, or a moment like 2027-01-31T12:00:00Z';
const MOMENT = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?Z)?$/;

/** A moment, in milliseconds since the epoch. A date means its beginning in UTC. */
const momentField = v.pipe(
  v.string(EXPIRES),
  v.check((text) => MOMENT.test(text) && isMoment(text), EXPIRES),
  v.transform((text) => Date.parse(text)),
);

/** Needed because Date.parse reads 31 February as a day in March. */
function isMoment(text: string): boolean {
  const at = Date.parse(text);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(text.slice(0, 10));
}

export const apiTokenSchema = v.object(
  {
    /** Each of these is the token, so that it can be rotated. */
    secret: secretsSchema,
    scopes: wholeField(v.array(textField(SCOPE, SCOPES)), SCOPES),
    /** Expiry. Default: never. */
    expires: v.optional(momentField),
  },
  'must be an object with secret, scopes',
);

/** A token in the configuration, as data. */
type ApiTokenConfig = Written<typeof apiTokenSchema>;

/** The tokens by name. */
export type ApiTokensConfig = Readonly<Record<string, ApiTokenConfig>>;

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

/** A user who may log in to the management endpoints. */
export type ManagementUser = Written<typeof userSchema>;

/** Reads `management.users`: an array with one entry per user. */
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
