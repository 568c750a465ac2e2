import { ACCESS_CODES } from './error-codes/access.ts';
import { DATABASE_CODES } from './error-codes/database.ts';
import { DOOR_CODES } from './error-codes/doors.ts';
import { GRAPHQL_CODES } from './error-codes/graphql.ts';
import { IMPORT_CODES } from './error-codes/imports.ts';
import { MANAGEMENT_CODES } from './error-codes/management.ts';
import { START_CODES } from './error-codes/start.ts';
import { USER_CODES } from './error-codes/users.ts';
import { WEBHOOK_CODES } from './error-codes/webhooks.ts';

/** All error codes of Portico; each is stable. `scripts/docs.ts` writes them into docs/ERRORS.md. */
export const ERROR_CODES = {
  ...START_CODES,
  ...DATABASE_CODES,
  ...USER_CODES,
  ...ACCESS_CODES,
  ...IMPORT_CODES,
  ...DOOR_CODES,
  ...GRAPHQL_CODES,
  ...MANAGEMENT_CODES,
  ...WEBHOOK_CODES,
} as const;

/** A code of Portico's own. */
export type ErrorCode = keyof typeof ERROR_CODES;
