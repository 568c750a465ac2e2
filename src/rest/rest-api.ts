import type { ErrorCode } from '../core/error-codes.ts';
import type { ApiGate } from '../http/access/api-gate.ts';
import { gateApi } from '../http/access/gate-api.ts';
import {
  type ApiParameter,
  type ApiReply,
  type DoorApi,
  pathParameter,
  queryParameter,
} from '../http/openapi/api.ts';
import { listOf, named, object, type Schema, text } from '../http/openapi/schema.ts';
import { PROBLEM_TYPE } from '../http/problem-details.ts';
import { newUserSchema, userSchema } from '../users/user-schema.ts';
import { EXPORT_CONTENT, IMPORT_CONTENT, IMPORT_REFUSALS, REPORT_CONTENT } from './bulk/bulk-api.ts';
import { JSON_TYPE } from './envelope.ts';
import {
  CHANGES_CONTENT,
  IDEMPOTENCY_KEY,
  LAST_EVENT,
  LIST_PARAMETERS,
  LIST_REFUSALS,
  NOT_MODIFIED,
  READ_CONDITIONS,
  VALIDATORS,
  WRITE_CONDITIONS,
} from './list-api.ts';

const ID = pathParameter('id', 'The id of a user.', { type: 'integer', minimum: 1 });
const prefer = (description: string, ...examples: readonly string[]): ApiParameter => ({
  in: 'header',
  name: 'prefer',
  description,
  schema: { type: 'string', examples },
});
const STRICT = prefer(
  '`handling=strict` gives the status of HTTP where the contract has another one.',
  'handling=strict',
);

const STORE = ['STORE_UNAVAILABLE', 'OUTCOME_UNKNOWN'] as const satisfies readonly ErrorCode[];
const BODY = [
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
const CONDITION = ['PRECONDITION_FAILED', 'PRECONDITION_REQUIRED'] as const satisfies readonly ErrorCode[];
const KEY = [
  'INVALID_IDEMPOTENCY_KEY',
  'IDEMPOTENCY_KEY_REUSED',
  'IDEMPOTENCY_KEY_IN_USE',
] as const satisfies readonly ErrorCode[];

const success = (members: Readonly<Record<string, Schema>>) =>
  object({ status: { const: 'success' }, ...members });
const done = (what: string): Schema => success({ message: { const: what } });
/** With `Prefer: return=representation` the user too. */
const withData = (what: string): Schema => success({ message: { const: what }, 'data?': named('User') });
const json = (description: string, schema: Schema, headers?: ApiReply['headers']): ApiReply => ({
  description,
  content: { [JSON_TYPE]: schema },
  ...(headers === undefined ? {} : { headers }),
});
/** A user of which only some fields are shown. */
const shownUser: Schema = { ...userSchema, required: [] };
/** A merge patch (RFC 7396). */
const userPatch: Schema = { ...newUserSchema, required: [] };
/** A user, or many of them. */
const newUsers = {
  required: true,
  content: { [JSON_TYPE]: { oneOf: [named('NewUser'), listOf(named('NewUser'))] }, ...IMPORT_CONTENT },
};
/** What makes a reply one of many types. */
const withContent = (reply: ApiReply, content: ApiReply['content']): ApiReply => ({
  ...reply,
  content: { ...reply.content, ...content },
});

/** The REST door as OpenAPI describes it (contract 4.2). `bodyLimit` is not part of it: 413 says so. */
export function restApi(prefix = '', gate?: ApiGate): DoorApi {
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
    about: 'Users as JSON over HTTP, many of them as NDJSON or CSV too.',
    refusal: { type: JSON_TYPE, schema: named('RestError') },
    ...(gate !== undefined && gateApi(gate)),
    schemas: {
      User: userSchema,
      NewUser: newUserSchema,
      RestError: object({ status: { const: 'error' }, message: text() }, 'What failed; the code says why.'),
    },
    paths: {
      [`${prefix}/users`]: {
        get: {
          id: 'listUsers',
          summary: 'Lists users: all of them, or a page of those that match; or follows their changes',
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
              json('The users, by id unless `sort` says otherwise.', success({ data: listOf(shownUser) }), {
                ...VALIDATORS,
                link: 'The next, the previous and the first page.',
                'x-total-count': 'How many users match, if asked for.',
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
            'A body of NDJSON or CSV is an import, and so is a JSON array with `Prefer: transaction=`. It is read as it comes, and the reply is a report on each line.',
          parameters: [
            prefer(
              '`handling=strict` gives 201; `return=representation` adds the user to the reply, for callers who may read. Of an import `transaction=all` stores all lines or none, `transaction=line` each alone, and `return=minimal` leaves the lines that were stored out of the report.',
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
          refusals: [...WRITE, ...KEY, ...IMPORT_REFUSALS],
          // Of an import in one transaction that stored nothing.
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
            queryParameter('fields', 'The fields that the user is shown with.', { type: 'string' }),
            ...READ_CONDITIONS,
          ],
          replies: {
            200: {
              description:
                'The user; or an error with the message "User not found", `USER_NOT_FOUND`, which is a 404 with `Prefer: handling=strict`.',
              content: {
                [JSON_TYPE]: { oneOf: [success({ data: shownUser }), named('RestError')] },
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
            content: { [JSON_TYPE]: named('NewUser'), 'application/merge-patch+json': userPatch },
          },
          replies: { 200: json('The user is stored.', withData('User updated successfully')) },
          refusals: ['USER_NOT_FOUND', ...WRITE, ...CONDITION],
        },
      },
      [`${prefix}/delete/{id}`]: {
        delete: {
          id: 'deleteUser',
          summary: 'Deletes a user',
          parameters: [ID, ...WRITE_CONDITIONS],
          replies: { 200: json('The user is gone.', done('User deleted successfully')) },
          refusals: ['USER_NOT_FOUND', ...STORE, ...BODY, ...CONDITION],
        },
      },
    },
  };
}
