import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import { CONCURRENCY, post } from './post.ts';
import { type Sending, serveEvents } from './service.ts';

const TASK = 'send';
const logger = new Logger(() => () => {});
/** The function that its `addJobs` calls, in the transaction of the event. */
const ADD_JOBS = {
  name: 'add-jobs',
  text: `SELECT count(*) FROM graphile_worker.add_jobs(
    array(SELECT json_populate_recordset(null::graphile_worker.job_spec, $1::json)), false)`,
};

await serveEvents(async (url) => {
  const utils = await makeWorkerUtils({ connectionString: url, logger });
  await utils.migrate();
  return {
    enqueue: (client, jobs) => {
      const specs = jobs.map((payload) => ({ identifier: TASK, payload, max_attempts: 25 }));
      return client.query({ ...ADD_JOBS, values: [JSON.stringify(specs)] });
    },
    // Its settings for many short jobs: it prefetches them and completes them in batches.
    work: () =>
      run({
        connectionString: url,
        logger,
        noHandleSignals: true,
        taskList: { [TASK]: (payload) => post(payload as Sending) },
        preset: {
          worker: {
            concurrentJobs: CONCURRENCY,
            maxPoolSize: 10,
            localQueue: { size: 500 },
            completeJobBatchDelay: 0,
            failJobBatchDelay: 0,
          },
        },
      }),
  };
});
