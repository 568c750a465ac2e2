import { PROBLEM_TYPE } from '@portico/transport';
import { accessApi } from '../../access/guarded.ts';
import type { AccessPolicy } from '../../access/policy.ts';
import type { ErrorCode } from '../../core/error-codes.ts';
import {
  type ApiParameter,
  type ApiReply,
  type DoorApi,
  listOf,
  named,
  object,
  pathParameter,
  queryParameter,
  type Schema,
  text,
} from '../../http/openapi.ts';
import { FILTERS, LIMIT } from '../../relations/lists.ts';
import type { addedMembers } from '../../relations/rows/row-schemas.ts';
import { newUserSchema, userSchema } from '../../relations/user.ts';
import { JSON_TYPE } from '../messages.ts';

export const CSV = 'text/csv';
export const NDJSON = 'application/x-ndjson';

/** Content types of the export, for clients that accept one of them and send no query. */
const EXPORT_CONTENT: Readonly<Record<string, Schema>> = {
  [NDJSON]: text('A user per line, as a JSON object.'),
  'text/csv; charset=utf-8': text('A line with the names of the columns, and a user per line (RFC 4180).'),
};

/** Content types of an import. A JSON array is an import with `Prefer: transaction=`. */
const IMPORT_CONTENT: Readonly<Record<string, Schema>> = {
  [NDJSON]: text('A new user per line, as a JSON object.'),
  [CSV]: text('A line with the names of the columns, and a new user per line (RFC 4180).'),
};

/** The report of an import. */
const REPORT_CONTENT: Readonly<Record<string, Schema>> = {
  [NDJSON]: text(
    'The report of an import: a JSON object per line, with the line and the id of its user, or with the line, a code and a reason. The last object has the totals.',
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

const ID = pathParameter('id', 'The id of a user.', { type: 'integer', minimum: 1 });
export const prefer = (description: string, ...examples: readonly string[]): ApiParameter => ({
  in: 'header',
  name: 'prefer',
  description,
  schema: { type: 'string', examples },
});
const STRICT = prefer(
  '`handling=strict` uses HTTP status codes where the contract uses others.',
  'handling=strict',
);

export const STORE = ['STORE_UNAVAILABLE', 'OUTCOME_UNKNOWN'] as const satisfies readonly ErrorCode[];
export const BODY = [
  'BODY_TOO_LARGE',
  'BUSY',
  'CROSS_SITE',
  'INVALID_UTF8',
  'MALFORMED_JSON',
  'PROTO_KEY',
  'TOO_DEEP',
  'TOO_SLOW',
] as const satisfies readonly ErrorCode[];
const WRITE = [...STORE, ...BODY, 'INVALID_USER', 'EMAIL_TAKEN'] as const;
export const CONDITION = [
  'PRECONDITION_FAILED',
  'PRECONDITION_REQUIRED',
] as const satisfies readonly ErrorCode[];
export const KEY = [
  'INVALID_IDEMPOTENCY_KEY',
  'IDEMPOTENCY_KEY_REUSED',
  'IDEMPOTENCY_KEY_IN_USE',
] as const satisfies readonly ErrorCode[];

const success = (members: Readonly<Record<string, Schema>>) =>
  object({ status: { const: 'success' }, ...members });
const done = (what: string): Schema => success({ message: { const: what } });
/** With the user if the client sent `Prefer: return=representation`. */
const withData = (what: string): Schema => success({ message: { const: what }, 'data?': named('User') });
export const json = (description: string, schema: Schema, headers?: ApiReply['headers']): ApiReply => ({
  description,
  content: { [JSON_TYPE]: schema },
  ...(headers === undefined ? {} : { headers }),
});
/** A user with only the requested fields. */
const shownUser: Schema = { ...userSchema, required: [] };
/** A merge patch (RFC 7396). */
const userPatch: Schema = { ...newUserSchema, required: [] };
/** A user, or a list of users. */
const newUsers = {
  required: true,
  content: { [JSON_TYPE]: { oneOf: [named('NewUser'), listOf(named('NewUser'))] }, ...IMPORT_CONTENT },
};
/** Adds content types to a reply. */
const withContent = (reply: ApiReply, content: ApiReply['content']): ApiReply => ({
  ...reply,
  content: { ...reply.content, ...content },
});

/** What a declaration adds to users. */
interface UsersApi {
  /** Whether rows of a relation can refer to users. */
  readonly areReferenced?: boolean;
  /** The schemas of columns; undefined without any. */
  readonly added?: ReturnType<typeof addedMembers> | undefined;
}

/**
 * The OpenAPI description of the REST door (CONTRACT.md#rest-routes). `bodyLimit` is not part of it; 413
 * reports it. `users` says what a declaration adds.
 */
export function restApi(prefix = '', policy?: AccessPolicy, users: UsersApi = {}): DoorApi {
  const { areReferenced = false, added } = users;
  const withAdded = (schema: Schema, members: Readonly<Record<string, Schema>> | undefined): Schema =>
    members === undefined
      ? schema
      : { ...schema, properties: { ...(schema.properties as object), ...members } };
  const shown = withAdded(shownUser, added?.read);
  const patch = withAdded(userPatch, added?.changed);
  const conflicts = added === undefined ? [] : (['TAKEN', 'REFERENCE_MISSING'] as const);
  const create = json(
    'The user is stored; or the report of an import.',
    withData('User created successfully'),
  );
  const created: ApiReply = {
    ...create,
    headers: { location: 'The path of the user.', etag: 'Names its version.' },
  };
  return {
    door: 'rest',
    about: 'Users as JSON over HTTP; lists and imports also as NDJSON or CSV.',
    refusal: { type: JSON_TYPE, schema: named('RestError') },
    ...(policy !== undefined && accessApi(policy)),
    schemas: {
      User: userSchema,
      NewUser: withAdded(newUserSchema, added?.written),
      RestError: object({ status: { const: 'error' }, message: text() }, 'What failed; the code says why.'),
    },
    paths: {
      [`${prefix}/users`]: {
        get: {
          id: 'listUsers',
          summary: 'Lists all users or a page of the matching ones, or follows their changes',
          parameters: [
            ...LIST_PARAMETERS,
            ...READ_CONDITIONS,
            ...LAST_EVENT,
            prefer(
              '`count=exact` for `X-Total-Count`; `handling=lenient` ignores wrong parameters.',
              'count=exact',
            ),
          ],
          replies: {
            200: withContent(
              json('The users, by id unless `sort` says otherwise.', success({ data: listOf(shown) }), {
                ...VALIDATORS,
                link: 'The next, the previous and the first page.',
                'x-total-count': 'The number of matching users, if requested.',
              }),
              { ...EXPORT_CONTENT, ...CHANGES_CONTENT },
            ),
            304: NOT_MODIFIED,
          },
          refusals: [...STORE, ...LIST_REFUSALS],
        },
        post: {
          id: 'createUser',
          summary: 'Creates a user, or imports many',
          description:
            'A body of NDJSON or CSV is an import, and so is a JSON array with `Prefer: transaction=`. It is processed while it arrives, and the reply reports on each line.',
          parameters: [
            prefer(
              '`handling=strict` gives 201; `return=representation` adds the user to the reply, for callers who may read. For an import `transaction=all` stores all lines or none, `transaction=line` stores each line separately, and `return=minimal` omits the stored lines from the report.',
              'handling=strict',
              'return=representation',
              'transaction=all',
            ),
            IDEMPOTENCY_KEY,
          ],
          body: newUsers,
          replies: {
            200: withContent(created, REPORT_CONTENT),
            201: { ...created, description: 'The user is stored, with `Prefer: handling=strict`.' },
          },
          refusals: [...WRITE, ...KEY, ...IMPORT_REFUSALS, ...conflicts],
          // An import in one transaction that stored nothing.
          refusalContent: { 400: REPORT_CONTENT, 409: REPORT_CONTENT },
        },
      },
      [`${prefix}/users/{id}`]: {
        get: {
          id: 'readUser',
          summary: 'Reads a user',
          parameters: [
            ID,
            STRICT,
            queryParameter('fields', 'The fields of the user to return.', { type: 'string' }),
            ...READ_CONDITIONS,
          ],
          replies: {
            200: {
              description:
                'The user; or an error with the message "User not found", `USER_NOT_FOUND`, which is a 404 with `Prefer: handling=strict`.',
              content: {
                [JSON_TYPE]: { oneOf: [success({ data: shown }), named('RestError')] },
                [PROBLEM_TYPE]: named('Problem'),
              },
              headers: VALIDATORS,
            },
            304: NOT_MODIFIED,
          },
          refusals: ['USER_NOT_FOUND', 'INVALID_PARAMETER', ...STORE],
        },
      },
      [`${prefix}/update/{id}`]: {
        put: {
          id: 'updateUser',
          summary: 'Replaces the name and the email of a user, or one of them',
          parameters: [
            ID,
            ...WRITE_CONDITIONS,
            prefer(
              '`return=representation` adds the user to the reply, for callers who may read.',
              'return=representation',
            ),
          ],
          body: {
            required: true,
            content: { [JSON_TYPE]: named('NewUser'), 'application/merge-patch+json': patch },
          },
          replies: { 200: json('The user is stored.', withData('User updated successfully')) },
          refusals: ['USER_NOT_FOUND', ...WRITE, ...CONDITION, ...conflicts],
        },
      },
      [`${prefix}/delete/{id}`]: {
        delete: {
          id: 'deleteUser',
          summary: 'Deletes a user',
          parameters: [ID, ...WRITE_CONDITIONS],
          replies: { 200: json('The user is deleted.', done('User deleted successfully')) },
          refusals: [
            ...(['USER_NOT_FOUND', ...STORE, ...BODY, ...CONDITION] as const),
            ...(areReferenced ? (['REFERENCED'] as const) : []),
          ],
        },
      },
    },
  };
}

export const header = (name: string, description: string, example: string): ApiParameter => ({
  in: 'header',
  name,
  description,
  schema: { type: 'string', examples: [example] },
});

/** The conditions of a read (RFC 9110 13.1). */
const READ_CONDITIONS: readonly ApiParameter[] = [
  header(
    'if-none-match',
    'The ETag that the client has; the reply is 304 while it is current.',
    '"1795352385129"',
  ),
  header('if-modified-since', 'The Last-Modified that the client has.', 'Sun, 22 Nov 2026 12:00:00 GMT'),
];

/** The conditions of a write. */
const WRITE_CONDITIONS: readonly ApiParameter[] = [
  header('if-match', 'The ETag that the user must have; otherwise the reply is 412.', '"1795352385129"'),
  header(
    'if-unmodified-since',
    'The Last-Modified that the client has; the reply is 412 if the user was changed later.',
    'Sun, 22 Nov 2026 12:00:00 GMT',
  ),
];

const IDEMPOTENCY_KEY = header(
  'idempotency-key',
  'A unique key for this create, separate for each caller: a repetition with the same body gets the same reply and creates nothing. A repeated import continues after the last stored line.',
  '6f1c1d5e-7b7a-4c8e-9a35-0d2f6f6f2b0e',
);

const VALIDATORS: NonNullable<ApiReply['headers']> = {
  etag: 'The version that was read; send it in `If-None-Match` or `If-Match`.',
  'last-modified': 'The time of the last change; absent within the second of the change.',
};

const NOT_MODIFIED: ApiReply = {
  description: 'The copy of the client is current.',
  headers: VALIDATORS,
};

/** The position from which a stream of changes starts. */
export const LAST_EVENT: readonly ApiParameter[] = [
  header(
    'last-event-id',
    'For an event stream: the id of the last event that the client received.',
    '12.1795352385129',
  ),
  queryParameter('lastEventId', 'Last-Event-ID for clients that cannot set the header.', { type: 'string' }),
];

/** The changes of users, for clients that accept an event stream. */
const CHANGES_CONTENT = {
  'text/event-stream; charset=utf-8': text(
    'Changes of users from now on, or after the event in Last-Event-ID: `user.created`, `user.updated` and `user.deleted`, each with the user as JSON.',
  ),
} as const;

/** The query of a list; without one the reply has all users. */
const LIST_PARAMETERS: readonly ApiParameter[] = [
  queryParameter('limit', 'Users per page.', { type: 'integer', minimum: 1, maximum: LIMIT.max }),
  queryParameter('cursor', 'The start of the page, from a `Link` of a neighbouring page.', {
    type: 'string',
  }),
  queryParameter('sort', 'Fields to sort by; `-` before a field sorts in descending order.', {
    type: 'string',
    examples: ['name,-id'],
  }),
  queryParameter('fields', 'The fields of each user to return.', {
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

const LIST_REFUSALS = [
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
