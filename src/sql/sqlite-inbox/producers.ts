import type { DatabaseSync } from 'node:sqlite';
import type { Appended, Enqueued, EnqueuedDeliveries } from '../../inbox/inbox.ts';
import { OLDEST_ENQUEUED } from '../inbox-sql.ts';
import { readRows } from '../sqlite/connection.ts';
import type { StepRows } from '../sqlite-writer/batch.ts';
import type { WriteQueue } from '../sqlite-writer/write-queue.ts';
import { type AppendSteps, readAppended } from './append.ts';

const readTaken = ([taken = [], ...rows]: StepRows): Appended | undefined =>
  taken.length === 0 ? undefined : readAppended(rows);

/** Deliveries that programs have enqueued in an SQLite file through their own connections. */
export function sqliteEnqueued(
  reads: DatabaseSync,
  writes: WriteQueue,
  appendSteps: AppendSteps,
): EnqueuedDeliveries {
  const oldest = reads.prepare(OLDEST_ENQUEUED);
  return {
    oldest: () => readRows<Enqueued>(oldest),
    take: (taken) =>
      Promise.all(
        taken.map(({ seq, delivery }) => {
          const take = { statement: 'takeEnqueued', values: [seq, delivery.id] } as const;
          return writes.submit([take, ...appendSteps(delivery, 'if-changed')], readTaken);
        }),
      ),
  };
}
