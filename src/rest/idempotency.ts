import { createHash } from 'node:crypto';
import type { Exchange } from '../http/endpoint.ts';
import { HttpProblem } from '../http/problem.ts';
import type { IdempotencyKey, IdempotentOutcome } from '../users/idempotent-create.ts';

const HOUR = 3_600_000;
const KEY = /^[\x21-\x7e]{1,255}$/;

/** Reads Idempotency-Key, with quotes (draft-ietf-httpapi-idempotency-key-header) or without; undefined when there is none. */
export function idempotencyKey(
  { headers, body }: Pick<Exchange, 'headers' | 'body'>,
  hours: number,
): IdempotencyKey | undefined {
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
  return { key, fingerprint: createHash('sha256').update(body).digest('hex'), keptFor: hours * HOUR };
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
