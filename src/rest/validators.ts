import type { Exchange, Reply } from '../http/endpoint.ts';
import { isNotModified, lastModified, readEntityTags, type Validators } from '../http/entity-tags.ts';
import { HttpProblem } from '../http/problem.ts';
import type { WriteCondition } from '../users/user-change.ts';
import { JSON_TYPE } from './envelope.ts';

/** What a client may compare of a user. */
export function userValidators(version: number): Validators {
  return { etag: `"${version}"`, changed: version };
}

/** What a client may compare of a list: weak, because a long list shows what changes while it is read. */
export function listValidators(state: string): Validators {
  return { etag: `W/"${state}"`, changed: Number(state.slice(state.lastIndexOf('.') + 1)) };
}

/** The header fields of a read. Without `no-cache` a cache could keep what has a Last-Modified for hours. */
export function validatorHeaders({ etag, changed }: Validators): Readonly<Record<string, string>> {
  const modified = lastModified(changed);
  if (modified === undefined) return { etag, 'cache-control': 'no-cache' };
  return { etag, 'last-modified': modified, 'cache-control': 'no-cache' };
}

/** Whether a read has a condition that can make it a 304. */
export function isConditional({ headers }: Pick<Exchange, 'headers'>): boolean {
  return headers['if-none-match'] !== undefined || headers['if-modified-since'] !== undefined;
}

/** The 304 that a client gets for what it has already; undefined when it has not. */
export function notModified(
  { headers }: Pick<Exchange, 'headers'>,
  validators: Validators,
): Reply | undefined {
  if (!isNotModified(headers, validators)) return undefined;
  return { status: 304, type: JSON_TYPE, body: '', headers: validatorHeaders(validators) };
}

/** The condition of a write; undefined without one. */
export function writeCondition({ headers }: Pick<Exchange, 'headers'>): WriteCondition | undefined {
  const { 'if-match': match, 'if-unmodified-since': since } = headers;
  if (match !== undefined) {
    const tags = readEntityTags(match);
    if (tags === '*') return { versions: undefined, before: undefined };
    // A weak tag never matches here (RFC 9110 13.1.1).
    return { versions: tags.map(versionOf).filter((version) => version !== undefined), before: undefined };
  }
  const moment = Date.parse(since ?? '');
  return Number.isNaN(moment) ? undefined : { versions: undefined, before: moment + 1_000 };
}

function versionOf(tag: string): number | undefined {
  const [, digits] = /^"(0|[1-9]\d{0,15})"$/.exec(tag) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/** The refusal of a write that is meant for another version. */
export const CHANGED_MEANWHILE = new HttpProblem(
  412,
  'PRECONDITION_FAILED',
  'The user has been changed since; read it again',
);

/** The refusal of a write without a condition. */
export const NEEDS_IF_MATCH = new HttpProblem(
  428,
  'PRECONDITION_REQUIRED',
  'A write needs If-Match with the ETag of the user',
);
