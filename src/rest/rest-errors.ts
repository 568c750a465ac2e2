import { type ErrorFormat, HttpProblem, type Reply, reasonPhrase } from '@portico/transport';

// The response envelope of CONTRACT.md#rest-envelope: `status`, then `data` for a read or `message` for other
// replies.

/** The content type of all replies of this door (CONTRACT.md#rest-envelope). */
export const JSON_TYPE = 'application/json';

/** A success with data, given as JSON text. */
export function data(json: string): string {
  return `{"status":"success","data":${json}}`;
}

/** A success of a write. */
export function done(message: string): string {
  return JSON.stringify({ status: 'success', message });
}

/** Any error. */
export function failure(message: string): string {
  return JSON.stringify({ status: 'error', message });
}

export const CREATED = done('User created successfully');
export const USER_NOT_FOUND = failure('User not found');

/** A reply of this door. */
export function json(body: Reply['body'], status = 200, headers?: Reply['headers']): Reply {
  return { status, type: JSON_TYPE, body, headers };
}

/** Adds the written user, given as JSON text, to the reply of a write. */
export function withData(reply: Reply, user: string): Reply {
  const body = `${String(reply.body).slice(0, -1)},"data":${user}}`;
  const applied = [reply.headers?.['preference-applied'], 'return=representation'].filter(Boolean).join(', ');
  return { ...reply, body, headers: { ...reply.headers, 'preference-applied': applied } };
}

/** Messages of failed writes (CONTRACT.md#errors). */
const WRITE_FAILED: Readonly<Record<string, string>> = {
  POST: 'Failed to create user',
  PUT: 'Failed to update user',
  DELETE: 'Failed to delete user',
};

/** Bodies of refusals that do not depend on the request. */
const BODIES: Readonly<Record<string, string>> = {
  // CONTRACT.md#errors: an unknown first segment
  NO_ROUTE: failure('Endpoint not found'),
  NO_WEBSOCKET: failure('There are no WebSockets here'),
  USER_NOT_FOUND,
  // CONTRACT.md#rest-routes: another method on a known path, or no id where one is needed
  METHOD_NOT_ALLOWED: '',
};

/** Codes whose message is shown for a read; writes show the contract's message. */
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

/**
 * Codes whose message is always shown: imports and requests for another host are not part of the contract.
 */
const EXPLAINED_ALWAYS: ReadonlySet<string> = new Set([
  'INVALID_IMPORT',
  'IMPORT_TOO_LARGE',
  'IMPORT_IN_PROGRESS',
  'IMPORT_KEY_REUSED',
  'LINE_TOO_LONG',
  'UNKNOWN_HOST',
]);

/** Formats every refusal of this door as the contract's error envelope. */
export const restErrors: ErrorFormat = {
  contentType: JSON_TYPE,
  // CONTRACT.md#errors: an unknown user is an error in the body of a 200
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
/** The refusal of an unknown path. */
export const NO_ROUTE = new HttpProblem(404, 'NO_ROUTE', 'No resource has this path');
/** The refusal of an unknown user. */
export const NO_SUCH_USER = new HttpProblem(404, 'USER_NOT_FOUND', 'There is no user with this id');

/** The refusal of a method that a resource does not accept; `allow` lists the accepted methods. */
export function methodNotAllowed(allow: string): HttpProblem {
  const message = 'The resource does not accept this method, or needs an id';
  return new HttpProblem(405, 'METHOD_NOT_ALLOWED', message, { headers: { allow } });
}

/**
 * The resources by first path segment (CONTRACT.md#rest-routes), with the methods that each accepts without
 * and with a second segment.
 */
const RESOURCES: Readonly<Record<string, readonly [bare: string, withId: string]>> = {
  users: ['GET, HEAD, POST, OPTIONS', 'GET, HEAD, OPTIONS'],
  update: ['OPTIONS', 'PUT, OPTIONS'],
  delete: ['OPTIONS', 'DELETE, OPTIONS'],
};

/**
 * The methods that the resource of a request target accepts, for a request that matched no endpoint.
 * Undefined for an unknown first segment (CONTRACT.md#errors) or a path deeper than the contract's. A known
 * resource gets an empty reply (CONTRACT.md#rest-routes, second rule).
 */
export function allowedOf(target: string): string | undefined {
  const path = target.split('?', 1)[0] ?? '/';
  const [, first = '', second = '', ...deeper] = decode(path).split('/');
  const resource = Object.hasOwn(RESOURCES, first) ? RESOURCES[first] : undefined;
  if (resource === undefined || deeper.some((segment) => segment !== '')) return undefined;
  return second === '' ? resource[0] : resource[1];
}

function decode(path: string): string {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}
