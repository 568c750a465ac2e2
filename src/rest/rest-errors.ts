import type { ErrorFormat } from '../http/error-format.ts';
import { HttpProblem, reasonPhrase } from '../http/problem.ts';
import { failure, JSON_TYPE, USER_NOT_FOUND } from './envelope.ts';

/** What a write that fails says (contract 7). */
const WRITE_FAILED: Readonly<Record<string, string>> = {
  POST: 'Failed to create user',
  PUT: 'Failed to update user',
  DELETE: 'Failed to delete user',
};

/** The bodies of refusals that say the same whatever was asked. */
const BODIES: Readonly<Record<string, string>> = {
  // contract 7: an unknown first segment
  NO_ROUTE: failure('Endpoint not found'),
  NO_WEBSOCKET: failure('There are no WebSockets here'),
  USER_NOT_FOUND,
  // contract 4.2: another method on a known path, or no id where one is needed
  METHOD_NOT_ALLOWED: '',
};

/** Refusals of a read that say what is wrong with the request; those of a write say what the contract has. */
const EXPLAINED: ReadonlySet<string> = new Set([
  'UNKNOWN_PARAMETER',
  'INVALID_PARAMETER',
  'INVALID_CURSOR',
  'SEARCH_OFF',
  'TOO_MANY_MATCHES',
  'EVENTS_GONE',
  'INVALID_EVENT_ID',
  'TOO_MANY_STREAMS',
]);

/** Refusals of imports, which are none of the contract's creates, and of requests that are for another host. */
const EXPLAINED_ALWAYS: ReadonlySet<string> = new Set([
  'INVALID_IMPORT',
  'IMPORT_TOO_LARGE',
  'IMPORT_IN_PROGRESS',
  'IMPORT_KEY_REUSED',
  'LINE_TOO_LONG',
  'UNKNOWN_HOST',
]);

/** Every refusal of this door is the contract's error envelope. */
export const restErrors: ErrorFormat = {
  contentType: JSON_TYPE,
  // contract 7: an unknown user is an error in the body of a 200
  contractStatus: ({ code }, { method }) =>
    code === 'USER_NOT_FOUND' && (method === 'GET' || method === 'HEAD') ? 200 : undefined,
  body: ({ code, status, message }, request) =>
    BODIES[code] ??
    failure(
      EXPLAINED_ALWAYS.has(code)
        ? message
        : (WRITE_FAILED[request?.method ?? ''] ?? (EXPLAINED.has(code) ? message : reasonPhrase(status))),
    ),
};

// Created once, because the stack of a refusal is not used.
/** The refusal of a path that is no resource. */
export const NO_ROUTE = new HttpProblem(404, 'NO_ROUTE', 'No resource has this path');
/** The refusal of a user that there is not. */
export const NO_SUCH_USER = new HttpProblem(404, 'USER_NOT_FOUND', 'There is no user with this id');

/** The refusal of a method that a resource does not take; `allow` lists those that it takes. */
export function methodNotAllowed(allow: string): HttpProblem {
  const message = 'The resource does not take this method, or needs an id';
  return new HttpProblem(405, 'METHOD_NOT_ALLOWED', message, { headers: { allow } });
}
