import type { ErrorCode } from '../../core/error-codes.ts';
import { type Schema, text } from '../../http/openapi/schema.ts';

const CSV = 'text/csv';
const NDJSON = 'application/x-ndjson';

/** The list of all users as lines, for clients that accept one of these types and send no query. */
export const EXPORT_CONTENT: Readonly<Record<string, Schema>> = {
  [NDJSON]: text('A user per line, as a JSON object.'),
  'text/csv; charset=utf-8': text('A line with the names of the columns, and a user per line (RFC 4180).'),
};

/** The bodies of an import. An array is JSON, and is an import by `Prefer: transaction=`. */
export const IMPORT_CONTENT: Readonly<Record<string, Schema>> = {
  [NDJSON]: text('A new user per line, as a JSON object.'),
  [CSV]: text('A line with the names of the columns, and a new user per line (RFC 4180).'),
};

/** The report of an import. */
export const REPORT_CONTENT: Readonly<Record<string, Schema>> = {
  [NDJSON]: text(
    'The report of an import: a JSON object per line, with the line and the id of its user, or with the line, a code and a reason; the totals are in the last one.',
  ),
};

export const IMPORT_REFUSALS = [
  'INVALID_IMPORT',
  'IMPORT_TOO_LARGE',
  'IMPORT_IN_PROGRESS',
  'IMPORT_KEY_REUSED',
  'LINE_TOO_LONG',
  'MALFORMED_CSV',
] as const satisfies readonly ErrorCode[];
