import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import {
  HttpProblem,
  type KnownCaller,
  parseJsonBody,
  type Reply,
  type RequestContext,
} from '@portico/transport';
import {
  type IdempotencyKey,
  type IdempotentOutcome,
  type NewUser,
  readNewUser,
  userProblem,
  userProblems,
  type WriteCondition,
} from '../relations/user.ts';
import { JSON_TYPE } from './rest-errors.ts';

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

/** The condition of a write; undefined without one. */
export function writeCondition({ headers }: Pick<RequestContext, 'headers'>): WriteCondition | undefined {
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

/** The refusal of a write whose condition does not match the user's version. */
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

const HOUR = 3_600_000;
const KEY = /^[\x21-\x7e]{1,255}$/;

/**
 * Reads the idempotency key of a create with a fingerprint of its body; undefined without a key. Throws
 * HttpProblem.
 */
export function createKey(ctx: RequestContext, hours: number): IdempotencyKey | undefined {
  const key = idempotencyKey(ctx);
  if (key === undefined) return undefined;
  const fingerprint = createHash('sha256').update(ctx.body).digest('hex');
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
  return caller === undefined ? key : `${digestOf(caller)} ${key}`;
}

/**
 * A digest, since an id may have any length and any character. A key has no space, so the keys of two callers
 * never collide.
 */
function digestOf({ id }: KnownCaller): string {
  return createHash('sha256').update(JSON.stringify(id)).digest('base64url');
}

/** The created user of an outcome. Throws HttpProblem. */
export function createdOf(
  outcome: IdempotentOutcome,
): Extract<IdempotentOutcome, { readonly is: 'created' }> {
  if (outcome.is === 'created') return outcome;
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
