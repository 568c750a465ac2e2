import { createHash } from 'node:crypto';
import type { KnownCaller } from '../http/access/caller.ts';
import type { Exchange } from '../http/endpoint.ts';
import { HttpProblem } from '../http/problem.ts';
import type { IdempotencyKey, IdempotentOutcome } from '../users/idempotent-create.ts';

const HOUR = 3_600_000;
const KEY = /^[\x21-\x7e]{1,255}$/;

/** Reads the key of a create and what was sent with it; undefined when there is none. Throws HttpProblem. */
export function createKey(exchange: Exchange, hours: number): IdempotencyKey | undefined {
  const key = idempotencyKey(exchange);
  if (key === undefined) return undefined;
  const fingerprint = createHash('sha256').update(exchange.body).digest('hex');
  return { key, fingerprint, keptFor: hours * HOUR };
}

/**
 * Reads Idempotency-Key, with quotes (draft-ietf-httpapi-idempotency-key-header) or without, as the key of its caller:
 * nobody gets what another has stored. Callers without credentials are one. Undefined when there is none. Throws
 * HttpProblem.
 */
export function idempotencyKey({ headers, caller }: Exchange): string | undefined {
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

/** An id may have any length and any character; a key has no space, so no two callers can make the same text. */
function digestOf({ id }: KnownCaller): string {
  return createHash('sha256').update(JSON.stringify(id)).digest('base64url');
}

/** The user of an outcome. Throws HttpProblem. */
export function createdOf(
  outcome: IdempotentOutcome,
): Extract<IdempotentOutcome, { readonly is: 'created' }> {
  if (outcome.is === 'created') return outcome;
  if (outcome.is === 'reused') {
    throw new HttpProblem(422, 'IDEMPOTENCY_KEY_REUSED', 'The Idempotency-Key came with another body before');
  }
  throw new HttpProblem(409, 'IDEMPOTENCY_KEY_IN_USE', 'A request with this Idempotency-Key is in progress', {
    headers: { 'retry-after': '1' },
  });
}
