import type { ErrorEntries } from './entry.ts';

/** Codes of imports of users. */
export const IMPORT_CODES = {
  INVALID_IMPORT: {
    status: 400,
    text: 'An import cannot be read as what its type says: a CSV without the right columns in its first line, or a JSON array that is none or does not end. The message says what is wrong.',
  },
  IMPORT_TOO_LARGE: {
    status: 413,
    text: 'An import has more bytes than `REST_MAX_IMPORT_BYTES`, or is too large for one transaction; split it, or leave out `transaction=all`.',
  },
  IMPORT_IN_PROGRESS: {
    status: 409,
    text: 'Another import under the same key is in progress and has gone on; wait until it has ended and send it again.',
  },
  IMPORT_KEY_REUSED: {
    status: 422,
    text: 'The key came with another import before, and what that has stored is not what this one begins with; send each import with a key of its own.',
  },
  LINE_TOO_LONG: { status: 400, text: 'A line of an import is longer than any user may be; shorten it.' },
  MALFORMED_CSV: {
    status: 400,
    text: 'A line of a CSV has a wrong number of fields, or a quote where none may be; put fields with commas or quotes in quotes and double the quotes inside.',
  },
} as const satisfies ErrorEntries;
