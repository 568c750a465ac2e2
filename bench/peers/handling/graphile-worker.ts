import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import { BODY, CONCURRENCY, handleBacklog } from './queue.ts';

const TASK = 'payment_received';
const logger = new Logger(() => () => {});

await handleBacklog(async (url) => {
  const utils = await makeWorkerUtils({ connectionString: url, logger });
  await utils.migrate();
  return {
    enqueue: (keys) =>
      utils.addJobs(
        keys.map((key) => ({
          identifier: TASK,
          payload: BODY,
          ...(key === null ? {} : { queueName: key }),
        })),
      ),
    // Its settings for many short jobs: it prefetches them and completes them in batches.
    work: (onHandled) =>
      run({
        connectionString: url,
        logger,
        noHandleSignals: true,
        taskList: { [TASK]: () => onHandled() },
        preset: {
          worker: {
            concurrentJobs: CONCURRENCY,
            maxPoolSize: 10,
            localQueue: { size: 128 },
            completeJobBatchDelay: 0,
            failJobBatchDelay: 0,
          },
        },
      }),
  };
});
