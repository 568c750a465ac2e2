import type { ErrorCode } from '../core/error-codes.ts';
import { type ApiParameter, type ApiReply, queryParameter } from '../http/openapi/api.ts';
import { text } from '../http/openapi/schema.ts';
import { FILTERS } from '../users/lists/filters.ts';
import { LIMIT } from '../users/lists/parameters.ts';

const header = (name: string, description: string, example: string): ApiParameter => ({
  in: 'header',
  name,
  description,
  schema: { type: 'string', examples: [example] },
});

/** The conditions of a read (RFC 9110 13.1). */
export const READ_CONDITIONS: readonly ApiParameter[] = [
  header('if-none-match', 'The ETag that the client has; 304 while it is still the one.', '"1795352385129"'),
  header('if-modified-since', 'The Last-Modified that the client has.', 'Sun, 22 Nov 2026 12:00:00 GMT'),
];

/** The conditions of a write. */
export const WRITE_CONDITIONS: readonly ApiParameter[] = [
  header('if-match', 'The ETag of the user that is meant; 412 when it has another one.', '"1795352385129"'),
  header(
    'if-unmodified-since',
    'The Last-Modified of the user that is meant.',
    'Sun, 22 Nov 2026 12:00:00 GMT',
  ),
];

export const IDEMPOTENCY_KEY = header(
  'idempotency-key',
  'A name for this create, known for its caller alone: repeated with the same body it gives the same reply and creates nothing. An import goes on behind the line up to which it was stored.',
  '6f1c1d5e-7b7a-4c8e-9a35-0d2f6f6f2b0e',
);

export const VALIDATORS: NonNullable<ApiReply['headers']> = {
  etag: 'Names what was read; send it in `If-None-Match` or `If-Match`.',
  'last-modified': 'When it was changed last, once that second is over.',
};

export const NOT_MODIFIED: ApiReply = { description: 'The client has it already.', headers: VALIDATORS };

/** Where a stream of changes begins. */
export const LAST_EVENT: readonly ApiParameter[] = [
  header('last-event-id', 'Of an event stream: the last event that the client has seen.', '12.1795352385129'),
  queryParameter('lastEventId', 'The same, for clients that cannot set the header.', { type: 'string' }),
];

/** The changes of the users, for clients that ask for an event stream. */
export const CHANGES_CONTENT = {
  'text/event-stream; charset=utf-8': text(
    'What is done to users from now on, or behind the event that is named: `user.created`, `user.updated` and `user.deleted`, each with the user as JSON.',
  ),
} as const;

/** The query of a list. Without one the reply has all users. */
export const LIST_PARAMETERS: readonly ApiParameter[] = [
  queryParameter('limit', 'Users per page.', { type: 'integer', minimum: 1, maximum: LIMIT.max }),
  queryParameter('cursor', 'Where the page begins: from a `Link` of the page before or behind it.', {
    type: 'string',
  }),
  queryParameter('sort', 'Fields to sort by, `-` in front of one for the other direction.', {
    type: 'string',
    examples: ['name,-id'],
  }),
  queryParameter('fields', 'The fields that users are shown with.', {
    type: 'string',
    examples: ['id,name'],
  }),
  ...FILTERS.map((name) =>
    queryParameter(
      name,
      name === 'q' ? 'A part of the name or the email.' : `A filter on ${name.split(':')[0]}.`,
      {
        type: 'string',
      },
    ),
  ),
];

export const LIST_REFUSALS = [
  'UNKNOWN_PARAMETER',
  'INVALID_PARAMETER',
  'INVALID_CURSOR',
  'SEARCH_OFF',
  'TOO_MANY_MATCHES',
  'CROSS_SITE',
  'EVENTS_GONE',
  'INVALID_EVENT_ID',
  'TOO_MANY_STREAMS',
] as const satisfies readonly ErrorCode[];
