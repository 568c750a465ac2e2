import type { Reply } from '../http/endpoint.ts';

// The response envelope of contract 2.3: `status`, then `data` for a read, `message` for all else.

/** The content type that all replies of this door carry (contract 2.3). */
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
