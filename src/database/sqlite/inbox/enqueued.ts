import type { DatabaseSync } from 'node:sqlite';
import type { Enqueued, EnqueuedDeliveries } from '../../../inbox/enqueue/enqueued.ts';
import type { Appended } from '../../../inbox/inbox.ts';
import { OLDEST_ENQUEUED } from '../../enqueued-sql.ts';
import { readRows } from '../read-row.ts';
import type { StepRows } from '../writer/batch.ts';
import type { WriteQueue } from '../writer/write-queue.ts';
import { type AppendSteps, readAppended } from './append-steps.ts';

const readTaken = ([taken = [], ...rows]: StepRows): Appended | undefined =>
  taken.length === 0 ? undefined : readAppended(rows);

/** What programs have enqueued in an SQLite file, each by a connection of its own. */
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
