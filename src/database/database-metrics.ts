import type { Metrics } from '../observability/metrics/metrics.ts';
import type { Database } from './database.ts';
import { type DatabaseObserver, READ_SAMPLE, type ReadTally } from './observer.ts';

/** From a fast fsync to a failing disk, in seconds. */
const COMMIT_BUCKETS = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5];

/** Declares the meters of the database: reads, writes and commits. */
export function databaseMeters(metrics: Metrics): DatabaseObserver {
  const times = metrics.timer('database.read.sample', {
    description: `Read duration by operation, from a sample of one in ${READ_SAMPLE} reads`,
    tags: ['operation'],
  });
  const commits = metrics.timer('database.commits', {
    description: 'Commit duration, from sending the first write of a batch to its result',
    buckets: COMMIT_BUCKETS,
  });
  const writes = metrics.counter('database.writes', {
    description: 'Writes by outcome; divided by the number of commits: the mean batch size',
    tags: ['outcome'],
  });
  const stored = writes.with('outcome', 'stored');
  const failures = writes.with('outcome', 'failed');

  return {
    reads(operation) {
      const series = times.with('operation', operation);
      const tally: ReadTally = { count: 0, timed: (seconds) => series.record(seconds) };
      const options = { description: 'Reads by operation', tags: { operation } };
      metrics.counter('database.reads', options, () => tally.count);
      return tally;
    },
    batch(total, failed, seconds) {
      commits.record(seconds);
      stored.increment(total - failed);
      failures.increment(failed);
    },
  };
}

/** Declares the gauge of the WAL, on engines where the process has one of its own. */
export function addWalGauge(metrics: Metrics, { walBytes }: Pick<Database, 'walBytes'>): void {
  if (walBytes === undefined) return;
  const description = 'Size of the write-ahead log of SQLite';
  metrics.gauge('database.wal.size', { unit: 'bytes', description }, walBytes);
}
