import { MAX_EMAIL, MAX_NAME } from './new-user.ts';

/** Any text without NUL and lone surrogates, which no engine could give back. */
const STORABLE = '[^\\u0000\\ud800-\\udfff]';

const members = {
  name: {
    type: 'string',
    description: 'Any text that is not blank.',
    maxLength: MAX_NAME,
    pattern: `^(?=[^]*\\S)${STORABLE}*$`,
  },
  email: {
    type: 'string',
    description: 'A text with an @ between other characters.',
    maxLength: MAX_EMAIL,
    pattern: `^(?!@)${STORABLE.replace('[^', '[^@')}+@${STORABLE}+$`,
  },
} as const;

/**
 * What `readNewUser` takes, as a JSON Schema; a test holds the two against each other. The reader stays by hand: it is on
 * the path of every write. It counts UTF-16 code units, a schema characters.
 */
export const newUserSchema = {
  type: 'object',
  description: 'A user to store. Other members are ignored.',
  required: ['name', 'email'],
  properties: members,
} as const;

/** A stored user, as a JSON Schema. */
export const userSchema = {
  type: 'object',
  required: ['id', 'name', 'email'],
  properties: {
    id: { type: 'integer', description: 'Given once and never again.', minimum: 1 },
    name: { type: 'string' },
    email: { type: 'string' },
  },
} as const;
