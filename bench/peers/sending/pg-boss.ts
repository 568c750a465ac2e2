import { PgBoss } from 'pg-boss';
import { CONCURRENCY, post } from './post.ts';
import { type Sending, serveEvents } from './service.ts';

const QUEUE = 'send';
const LOOPS = 4;

await serveEvents(async (url) => {
  const boss = new PgBoss({ connectionString: url, max: 10, useListenNotify: true });
  boss.on('error', (error) => {
    throw error;
  });
  await boss.start();
  await boss.createQueue(QUEUE, {
    notify: true,
    retryLimit: 25,
    retryDelay: 5,
    retryBackoff: true,
    retryDelayMax: 8 * 60 * 60,
  });
  return {
    enqueue: (client, jobs) => {
      const db = { executeSql: (text: string, values?: unknown[]) => client.query(text, values) };
      return boss.insert(
        QUEUE,
        jobs.map((data) => ({ data })),
        { db },
      );
    },
    // Fetches and completes jobs in batches; those that fail are retried alone.
    work: () =>
      boss.work<Sending>(
        QUEUE,
        {
          batchSize: CONCURRENCY / LOOPS,
          localConcurrency: LOOPS,
          burstWhenBatchFull: true,
          pollingIntervalSeconds: 0.5,
          perJobResults: true,
        },
        (jobs) =>
          Promise.all(
            jobs.map(async ({ id, data }) => {
              try {
                await post(data);
                return { id, status: 'completed' as const };
              } catch (error) {
                return { id, status: 'failed' as const, output: { error: String(error) } };
              }
            }),
          ),
      ),
  };
});
