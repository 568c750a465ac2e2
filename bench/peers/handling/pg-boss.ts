import { PgBoss } from 'pg-boss';
import { BODY, CONCURRENCY, handleBacklog } from './queue.ts';

const QUEUE = 'payment_received';

await handleBacklog(async (url, inOrder) => {
  const boss = new PgBoss(url);
  boss.on('error', (error) => {
    throw error;
  });
  await boss.start();
  await boss.createQueue(QUEUE, { policy: inOrder ? 'key_strict_fifo' : 'standard' });
  return {
    enqueue: (keys) =>
      boss.insert(
        QUEUE,
        keys.map((key) => ({ data: BODY, ...(key === null ? {} : { singletonKey: key }) })),
      ),
    // Its handlers receive batches, which are completed together; it fetches the next batch at once.
    work: (onHandled) =>
      boss.work(
        QUEUE,
        {
          batchSize: CONCURRENCY,
          localConcurrency: CONCURRENCY,
          pollingIntervalSeconds: 0.5,
          burstWhenBatchFull: true,
        },
        async (jobs) => {
          for (const _ of jobs) onHandled();
        },
      ),
  };
});
