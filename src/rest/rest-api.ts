import type { ErrorCode } from '../core/error-codes.ts';
import { type ApiParameter, type ApiReply, type DoorApi, pathParameter } from '../http/openapi/api.ts';
import { listOf, named, object, type Schema, text } from '../http/openapi/schema.ts';
import { PROBLEM_TYPE } from '../http/problem-details.ts';
import { newUserSchema, userSchema } from '../users/user-schema.ts';
import { JSON_TYPE } from './envelope.ts';

const ID = pathParameter('id', 'The id of a user.', { type: 'integer', minimum: 1 });
const STRICT: ApiParameter = {
  in: 'header',
  name: 'prefer',
  description: '`handling=strict` gives the status of HTTP where the contract has another one.',
  schema: { type: 'string', examples: ['handling=strict'] },
};

const STORE = ['STORE_UNAVAILABLE', 'OUTCOME_UNKNOWN'] as const satisfies readonly ErrorCode[];
const BODY = [
  'BODY_TOO_LARGE',
  'CROSS_SITE',
  'INVALID_UTF8',
  'MALFORMED_JSON',
  'PROTO_KEY',
  'TOO_DEEP',
] as const satisfies readonly ErrorCode[];
const WRITE = [...STORE, ...BODY, 'INVALID_USER'] as const;

const success = (members: Readonly<Record<string, Schema>>) =>
  object({ status: { const: 'success' }, ...members });
const done = (what: string): Schema => success({ message: { const: what } });
const json = (description: string, schema: Schema): ApiReply => ({
  description,
  content: { [JSON_TYPE]: schema },
});
const newUser = { required: true, content: { [JSON_TYPE]: named('NewUser') } };

/** The REST door as OpenAPI describes it (contract 4.2). `bodyLimit` is not part of it: 413 says so. */
export function restApi(prefix = ''): DoorApi {
  const create = json('The user is stored.', done('User created successfully'));
  const created: ApiReply = { ...create, headers: { location: 'The path of the user.' } };
  return {
    door: 'rest',
    about: 'Users as JSON over HTTP.',
    refusal: { type: JSON_TYPE, schema: named('RestError') },
    schemas: {
      User: userSchema,
      NewUser: newUserSchema,
      RestError: object({ status: { const: 'error' }, message: text() }, 'What failed; the code says why.'),
    },
    paths: {
      [`${prefix}/users`]: {
        get: {
          id: 'listUsers',
          summary: 'Lists all users',
          replies: { 200: json('The users, by id.', success({ data: listOf(named('User')) })) },
          refusals: STORE,
        },
        post: {
          id: 'createUser',
          summary: 'Creates a user',
          parameters: [STRICT],
          body: newUser,
          replies: {
            200: created,
            201: { ...created, description: 'The same, with `Prefer: handling=strict`.' },
          },
          refusals: WRITE,
        },
      },
      [`${prefix}/users/{id}`]: {
        get: {
          id: 'readUser',
          summary: 'Reads a user',
          parameters: [ID, STRICT],
          replies: {
            200: {
              description:
                'The user; or an error with the message "User not found", `USER_NOT_FOUND`, which is a 404 with `Prefer: handling=strict`.',
              content: {
                [JSON_TYPE]: { oneOf: [success({ data: named('User') }), named('RestError')] },
                [PROBLEM_TYPE]: named('Problem'),
              },
            },
          },
          refusals: ['USER_NOT_FOUND', ...STORE],
        },
      },
      [`${prefix}/update/{id}`]: {
        put: {
          id: 'updateUser',
          summary: 'Replaces the name and the email of a user',
          parameters: [ID],
          body: newUser,
          replies: { 200: json('The user is stored.', done('User updated successfully')) },
          refusals: ['USER_NOT_FOUND', ...WRITE],
        },
      },
      [`${prefix}/delete/{id}`]: {
        delete: {
          id: 'deleteUser',
          summary: 'Deletes a user',
          parameters: [ID],
          replies: { 200: json('The user is gone.', done('User deleted successfully')) },
          refusals: ['USER_NOT_FOUND', ...STORE, ...BODY],
        },
      },
    },
  };
}
