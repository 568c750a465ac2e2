import { type ErrorFormat, HttpProblem, type Reply, reasonPhrase } from '@portico/transport';

// The response envelope of CONTRACT.md#rest-envelope: `status`, then `data` for a read, `message` for all else.

/** The content type that all replies of this door carry (CONTRACT.md#rest-envelope). */
export const JSON_TYPE = 'application/json';

/** A success with data that is JSON text already. */
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

/** The reply of a write with the user that was written, as JSON text. */
export function withData(reply: Reply, user: string): Reply {
  const body = `${String(reply.body).slice(0, -1)},"data":${user}}`;
  const applied = [reply.headers?.['preference-applied'], 'return=representation'].filter(Boolean).join(', ');
  return { ...reply, body, headers: { ...reply.headers, 'preference-applied': applied } };
}

/** What a write that fails says (CONTRACT.md#errors). */
const WRITE_FAILED: Readonly<Record<string, string>> = {
  POST: 'Failed to create user',
  PUT: 'Failed to update user',
  DELETE: 'Failed to delete user',
};

/** The bodies of refusals that say the same whatever was asked. */
const BODIES: Readonly<Record<string, string>> = {
  // CONTRACT.md#errors: an unknown first segment
  NO_ROUTE: failure('Endpoint not found'),
  NO_WEBSOCKET: failure('There are no WebSockets here'),
  USER_NOT_FOUND,
  // CONTRACT.md#rest-routes: another method on a known path, or no id where one is needed
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
/** The refusal of a path that is no resource. */
export const NO_ROUTE = new HttpProblem(404, 'NO_ROUTE', 'No resource has this path');
/** The refusal of a user that there is not. */
export const NO_SUCH_USER = new HttpProblem(404, 'USER_NOT_FOUND', 'There is no user with this id');

/** The refusal of a method that a resource does not take; `allow` lists those that it takes. */
export function methodNotAllowed(allow: string): HttpProblem {
  const message = 'The resource does not take this method, or needs an id';
  return new HttpProblem(405, 'METHOD_NOT_ALLOWED', message, { headers: { allow } });
}

/**
 * What the first path segment selects (CONTRACT.md#rest-routes), and the methods that its shape takes
 * without and with a second segment.
 */
const RESOURCES: Readonly<Record<string, readonly [bare: string, withId: string]>> = {
  users: ['GET, HEAD, POST, OPTIONS', 'GET, HEAD, OPTIONS'],
  update: ['OPTIONS', 'PUT, OPTIONS'],
  delete: ['OPTIONS', 'DELETE, OPTIONS'],
};

/**
 * The methods that the resource of a request target takes, which no endpoint took: undefined for an unknown first
 * segment (CONTRACT.md#errors). A known one gets an empty reply (CONTRACT.md#rest-routes, second rule). A deeper path than the contract's
 * shapes is no resource.
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
