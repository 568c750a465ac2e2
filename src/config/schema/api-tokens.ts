import * as v from 'valibot';
import { SCOPE } from '../options/access/api-options.ts';
import { textField, wholeField } from './fields.ts';
import type { Written } from './read-object.ts';
import { secretsSchema } from './secret-reference.ts';

const SCOPES = 'must be an array of scopes, like ["users:read"]';
const EXPIRES = 'must be a date like 2027-01-31, or a moment like 2027-01-31T12:00:00Z';
const MOMENT = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?Z)?$/;

/** A moment, in milliseconds since the epoch. A date is its beginning, in UTC. */
const momentField = v.pipe(
  v.string(EXPIRES),
  v.check((text) => MOMENT.test(text) && isMoment(text), EXPIRES),
  v.transform((text) => Date.parse(text)),
);

/** Date.parse takes the 31st of February for a day of March. */
function isMoment(text: string): boolean {
  const at = Date.parse(text);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(text.slice(0, 10));
}

export const apiTokenSchema = v.object(
  {
    /** Any of them is the token, so that one can be replaced. */
    secret: secretsSchema,
    scopes: wholeField(v.array(textField(SCOPE, SCOPES)), SCOPES),
    /** When it ends; default never. */
    expires: v.optional(momentField),
  },
  'must be an object with secret, scopes',
);

/** A token of the configuration, as data. */
export type ApiTokenConfig = Written<typeof apiTokenSchema>;

/** The tokens by name. */
export type ApiTokensConfig = Readonly<Record<string, ApiTokenConfig>>;
