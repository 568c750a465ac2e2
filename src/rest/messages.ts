import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import {
  type ErrorFormat,
  HttpProblem,
  type KnownCaller,
  parseJsonBody,
  type Reply,
  type RequestContext,
  reasonPhrase,
} from '@portico/transport';
import { type Relation, USERS } from '../relations/relation.ts';
import {
  type IdempotencyKey,
  type NewUser,
  readNewUser,
  userProblem,
  userProblems,
  type WriteCondition,
} from '../relations/user.ts';

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

/** Formats the refusals of a door that also has relations: theirs are problem details. */
export function restErrorsWith(relations: ReadonlySet<string>, prefix = ''): ErrorFormat {
  if (relations.size === 0) return restErrors;
  return {
    ...restErrors,
    hasProblems: (url) => {
      const name = /^\/([^/?]*)/.exec(url.slice(prefix.length))?.[1] ?? '';
      return name === BATCH || name === CHANGES_PATH || relations.has(name) || relations.has(USERS);
    },
  };
}

// Created once, because the stack of a refusal is not used.
/** The refusal of an unknown path. */
export const NO_ROUTE = new HttpProblem(404, 'NO_ROUTE', 'No resource has this path');
/** The refusal of an unknown user. */
export const NO_SUCH_USER = new HttpProblem(404, 'USER_NOT_FOUND', 'There is no user with this id');

/** The refusal of a write without a condition. */
export const NEEDS_IF_MATCH = new HttpProblem(
  428,
  'PRECONDITION_REQUIRED',
  'A write needs If-Match with the ETag of what it changes',
);

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
 * `relations` are the names of those that are served, with users if they have the paths of one. Undefined for an unknown first segment (CONTRACT.md#errors) or a path deeper than the contract's. A known
 * resource gets an empty reply (CONTRACT.md#rest-routes, second rule).
 */
export function allowedOf(target: string, relations = NO_RELATIONS): string | undefined {
  const path = target.split('?', 1)[0] ?? '/';
  const [, first = '', second = '', ...deeper] = decode(path).split('/');
  const resource = relations.has(first)
    ? RELATION
    : ((Object.hasOwn(RESOURCES, first) && !relations.has(USERS) ? RESOURCES[first] : undefined) ??
      (relations.size > 0 ? COMMON[first] : undefined));
  if (resource === undefined || deeper.some((segment) => segment !== '')) return undefined;
  return second === '' ? resource[0] : resource[1];
}

const NO_RELATIONS: ReadonlySet<string> = new Set();

/** The path of batches of writes. */
export const BATCH = '_batch';
/** The path of the changes of several relations. */
export const CHANGES_PATH = '_changes';
/** The methods of paths that stand for several relations. */
const COMMON: Readonly<Record<string, readonly [bare: string, withId: string | undefined]>> = {
  [BATCH]: ['POST, OPTIONS', 'OPTIONS'],
  [CHANGES_PATH]: ['GET, HEAD, OPTIONS', undefined],
};

/** The methods of a relation and of its rows. */
const RELATION = ['GET, HEAD, POST, DELETE, OPTIONS', 'GET, HEAD, PATCH, PUT, DELETE, OPTIONS'] as const;

function decode(path: string): string {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}

/** Whether a body is a JSON merge patch (RFC 7396). */
export function isMergePatch({ contentType }: Pick<RequestContext, 'contentType'>): boolean {
  const [type = ''] = (contentType ?? '').split(';', 1);
  return type.trim().toLowerCase() === 'application/merge-patch+json';
}

/**
 * Reads the fields in a merge patch of a user. Throws HttpProblem, also for null, since no field can be
 * removed.
 */
export function readUserPatch({ body }: Pick<RequestContext, 'body'>): Partial<NewUser> {
  const given = parseJsonBody(body);
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw invalid(given);
  }
  const { name, email } = given as { readonly name?: unknown; readonly email?: unknown };
  const whole = { name: 'n', email: 'e@x', ...given };
  if (readNewUser(whole) === undefined) throw invalid(whole);
  return {
    ...(name === undefined ? {} : { name: String(name) }),
    ...(email === undefined ? {} : { email: String(email) }),
  };
}

/** Reads the user in a body. Throws HttpProblem. */
export function readUserBody({ body }: Pick<RequestContext, 'body'>): NewUser {
  const given = parseJsonBody(body);
  const user = readNewUser(given);
  if (user === undefined) throw invalid(given);
  return user;
}

// CONTRACT.md#errors: the reply does not say why; the log and problem details do
function invalid(given: unknown): HttpProblem {
  return new HttpProblem(400, 'INVALID_USER', userProblem(given), { reasons: userProblems(given) });
}

/** The validators of a user. */
export function userValidators(version: number): Validators {
  return { etag: `"${version}"`, changed: version };
}

/** The validators of a row of a relation. */
export function rowValidators(relation: Relation, version: number): Validators {
  // Only a column for versions has times.
  const changed = relation.existing === undefined ? version : 0;
  return { etag: `"${version}${shapeOf(relation)}"`, changed };
}

const shapes = new WeakMap<Relation, string>();

/** A digest of what rows look like, since a migration changes their JSON but not their versions. */
function shapeOf(relation: Relation): string {
  let shape = shapes.get(relation);
  if (shape === undefined) {
    const columns = relation.columns.map(({ name, type, rules }) => [
      name,
      type.kind,
      type.kind === 'decimal' ? type.scale : 0,
      rules?.read ?? 'all',
    ]);
    shape = `.${createHash('sha256').update(JSON.stringify(columns)).digest('hex').slice(0, 8)}`;
    shapes.set(relation, shape);
  }
  return shape;
}

/** The validators of a list. The tag is weak, because a long list shows changes made while it is read. */
export function listValidators(state: string): Validators {
  return { etag: `W/"${state}"`, changed: Number(state.slice(state.lastIndexOf('.') + 1)) };
}

/** The header fields of a read. `no-cache` stops caches from keeping a reply with Last-Modified for hours. */
export function validatorHeaders({ etag, changed }: Validators): Readonly<Record<string, string>> {
  const modified = lastModified(changed);
  if (modified === undefined) return { etag, 'cache-control': 'no-cache' };
  return { etag, 'last-modified': modified, 'cache-control': 'no-cache' };
}

/** Whether a read has a condition that can lead to a 304. */
export function isConditional({ headers }: Pick<RequestContext, 'headers'>): boolean {
  return headers['if-none-match'] !== undefined || headers['if-modified-since'] !== undefined;
}

/** The 304 reply if the client's copy is current; otherwise undefined. */
export function notModified(
  { headers }: Pick<RequestContext, 'headers'>,
  validators: Validators,
): Reply | undefined {
  if (!isNotModified(headers, validators)) return undefined;
  return { status: 304, type: JSON_TYPE, body: '', headers: validatorHeaders(validators) };
}

/** The condition of a write to a row of a relation, or to a user; undefined without one. */
export function writeCondition(
  { headers }: Pick<RequestContext, 'headers'>,
  relation?: Relation,
): WriteCondition | undefined {
  const { 'if-match': match, 'if-unmodified-since': since } = headers;
  if (match !== undefined) {
    const tags = readEntityTags(match);
    if (tags === '*') return { versions: undefined, before: undefined };
    // A weak tag never matches here (RFC 9110 13.1.1).
    const shape = relation === undefined ? '' : shapeOf(relation);
    const versions = tags.map((tag) => versionOf(tag, shape)).filter((version) => version !== undefined);
    return { versions, before: undefined };
  }
  if (relation?.existing !== undefined) return undefined;
  const moment = Date.parse(since ?? '');
  return Number.isNaN(moment) ? undefined : { versions: undefined, before: moment + 1_000 };
}

function versionOf(tag: string, shape: string): number | undefined {
  const [, digits, rest] = /^"(0|[1-9]\d{0,15})(\..*)?"$/.exec(tag) ?? [];
  return digits === undefined || (rest ?? '') !== shape ? undefined : Number(digits);
}

const HOUR = 3_600_000;
const KEY = /^[\x21-\x7e]{1,255}$/;

/**
 * Reads the idempotency key of a create with a fingerprint of its body and of what else says what it does;
 * undefined without a key. Throws HttpProblem.
 */
export function createKey(ctx: RequestContext, hours: number, how = ''): IdempotencyKey | undefined {
  const key = idempotencyKey(ctx);
  if (key === undefined) return undefined;
  const fingerprint = createHash('sha256').update(how).update(ctx.body).digest('hex');
  return { key, fingerprint, keptFor: hours * HOUR };
}

/**
 * Reads Idempotency-Key, with quotes (draft-ietf-httpapi-idempotency-key-header) or without, and prefixes it
 * with a digest of its caller, so that callers cannot get each other's outcomes. Callers without credentials
 * share their keys. Undefined without the header. Throws HttpProblem.
 */
export function idempotencyKey({ headers, caller }: RequestContext): string | undefined {
  const header = headers['idempotency-key'];
  if (header === undefined) return undefined;
  const [, quoted] = /^"(.*)"$/.exec(String(header)) ?? [];
  const key = quoted ?? String(header);
  if (!KEY.test(key)) {
    throw new HttpProblem(
      400,
      'INVALID_IDEMPOTENCY_KEY',
      'Idempotency-Key takes 1 to 255 visible ASCII characters, a UUID for example',
    );
  }
  return keyOfCaller(caller, key);
}

/** A key that other callers cannot have. */
export function keyOfCaller(caller: KnownCaller | undefined, key: string): string {
  return caller === undefined ? key : `${digestOf(caller)} ${key}`;
}

/**
 * A digest, since an id may have any length and any character. A key has no space, so the keys of two callers
 * never collide.
 */
function digestOf({ id }: KnownCaller): string {
  return createHash('sha256').update(JSON.stringify(id)).digest('base64url');
}

/** The kept outcome of a create with a key. Throws HttpProblem if there is none. */
export function keptOf<T extends { readonly is: string }>(
  outcome: T | { readonly is: 'reused' | 'running' },
): Extract<T, { readonly is: 'created' }> {
  if (outcome.is === 'created') return outcome as Extract<T, { readonly is: 'created' }>;
  if (outcome.is === 'reused') {
    throw new HttpProblem(
      422,
      'IDEMPOTENCY_KEY_REUSED',
      'The Idempotency-Key was used before with another body',
    );
  }
  throw new HttpProblem(409, 'IDEMPOTENCY_KEY_IN_USE', 'A request with this Idempotency-Key is in progress', {
    headers: { 'retry-after': '1' },
  });
}

/** Validators of a reply: the entity tag, and the time of the last change in milliseconds since 1970. */
export interface Validators {
  readonly etag: string;
  readonly changed: number;
}

const TAG = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/;

/** Reads If-Match or If-None-Match (RFC 9110 13.1): `*`, or a list of tags; invalid tags are dropped. */
function readEntityTags(header: string): '*' | readonly string[] {
  if (header.trim() === '*') return '*';
  const tags = header.match(/(?:W\/)?"[^"]*"/g) ?? [];
  return tags.filter((tag) => TAG.test(tag));
}

/**
 * Whether a read may be answered with 304: by If-None-Match if present, else by If-Modified-Since (RFC 9110
 * 13.2.2).
 */
function isNotModified(headers: IncomingHttpHeaders, { etag, changed }: Validators): boolean {
  const { 'if-none-match': noneMatch, 'if-modified-since': since } = headers;
  if (noneMatch !== undefined) {
    const tags = readEntityTags(noneMatch);
    return tags === '*' || tags.some((tag) => opaque(tag) === opaque(etag));
  }
  if (since === undefined || changed === 0) return false;
  const moment = Date.parse(since);
  return !Number.isNaN(moment) && Math.floor(changed / 1_000) * 1_000 <= moment;
}

/** A tag without its weakness prefix. */
function opaque(tag: string): string {
  return tag.startsWith('W/') ? tag.slice(2) : tag;
}

/**
 * Texts of Last-Modified by second; most users that are read together were changed in a few distinct seconds.
 */
const texts = new Map<number, string>();
const MAX_TEXTS = 1_000;

/**
 * The text of Last-Modified. Undefined for an unknown time, and within the second of the change: a second
 * change in the same second would be invisible to If-Modified-Since.
 */
function lastModified(changed: number, now = Date.now()): string | undefined {
  const second = Math.floor(changed / 1_000);
  if (second === 0 || second >= Math.floor(now / 1_000)) return undefined;
  const known = texts.get(second);
  if (known !== undefined) return known;
  if (texts.size === MAX_TEXTS) texts.clear();
  const text = new Date(second * 1_000).toUTCString();
  texts.set(second, text);
  return text;
}
