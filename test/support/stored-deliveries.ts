import assert from 'node:assert/strict';
import { randomUUIDv7 } from 'node:crypto';
import type { NewDelivery } from '../../src/inbox/delivery.ts';
import type { Database } from '../../src/sql/database.ts';
import { newDelivery } from './new-delivery.ts';

/** Stores deliveries of one event, as if they had come now; resolves to their ids, the oldest first. */
export async function storeDeliveries(
  { inbox }: Database,
  event: string,
  count: number,
  changes: Partial<NewDelivery> = {},
): Promise<readonly string[]> {
  const ids = Array.from({ length: count }, () => randomUUIDv7());
  const append = (id: string, i: number) =>
    inbox.append(
      newDelivery({
        id,
        event,
        body: Buffer.from(JSON.stringify({ event, data: i })),
        receivedAt: Date.now(),
        jobs: [{ target: `handler:${event}`, orderKey: null }],
        ...changes,
      }),
    );
  await Promise.all(ids.map(append));
  return ids;
}

/** Ends all deliveries of an event that wait for their handler. */
export async function settleAll({ inbox }: Database, event: string, kind: 'done' | 'dead'): Promise<void> {
  const now = Date.now() + 1_000;
  const jobs = await inbox.claim(`handler:${event}`, 1_000_000, 'test', 60_000, { now });
  const trace = { duration: 7, answer: null, kept: 20 };
  const outcome = kind === 'done' ? { kind, trace } : { kind, error: 'Error: not today', trace };
  const settled = await Promise.all(jobs.map((job) => inbox.settle(job, 'test', outcome, now)));
  assert.ok(settled.every(Boolean));
}
