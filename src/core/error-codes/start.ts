import type { ErrorEntries } from './entry.ts';

/** Codes of the start and the commands. */
export const START_CODES = {
  BACKUP: { text: 'A backup or a restore was refused or failed; do what the message says.' },
  CANNOT_LISTEN: { text: 'A door cannot open its port; free the port or configure another address.' },
  CONFIG_INVALID: { text: 'The configuration cannot be used; correct every problem that is listed.' },
  DATABASE_OPEN: {
    text: 'The database cannot be opened or written to, or another service runs on it; do what the message says.',
  },
  DOOR_SETUP: {
    text: 'The setup of a door in the configuration module failed or does not go with the door; correct what the message names.',
  },
  EMPTY_SECRET: { text: 'A configured secret is empty; give it a value or remove it.' },
  HEALTH_CHECK_NAME: { text: 'A health check has no name or that of another one; give each its own name.' },
  MANAGEMENT_OPTIONS: { text: 'The management door cannot be built from its options; change the one named.' },
  METER: { text: 'A meter is used against its declaration, which is a bug; report it.' },
  MOVE: { text: 'A move of the database was refused or stopped; do what the message says and run it again.' },
  PASSWORD_HASH: { text: 'A password hash cannot be read; make one with "portico hash-password".' },
  TLS_FILES: { text: 'A file of TLS cannot be used; correct what the message names.' },
  UNSIGNABLE: { text: 'A delivery cannot be signed as it is; change the header or the id that is named.' },
  UNUSABLE_SECRET: {
    text: 'A secret does not fit its signature scheme; configure one in the form that it needs.',
  },
  USAGE: { text: 'A command was called wrongly; "portico help" with its name shows how to call it.' },
  USER_NAME: {
    text: 'No Basic header can carry this user name; choose one without colons or control characters.',
  },
} as const satisfies ErrorEntries;
