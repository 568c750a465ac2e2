import type { Metrics } from '../observability/metrics/metrics.ts';
import { type DatabaseObserver, READ_SAMPLE, type ReadTally } from './observer.ts';

/** From a fast disk's sync to one that is in trouble, in seconds. */
const COMMIT_BUCKETS = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5];

/** The meters of the database: what is read, and how large and how slow the commits are. */
export function databaseMeters(metrics: Metrics): DatabaseObserver {
  const tallies = new Map<string, ReadTally>();
  const times = metrics.timer('database.read.sample', {
    description: `Durations of one in ${READ_SAMPLE} reads, by operation`,
    tags: ['operation'],
  });
  const commits = metrics.timer('database.commits', {
    description: 'Commits, from the hand-over of the first of their writes to the answer',
    buckets: COMMIT_BUCKETS,
  });
  const writes = metrics.counter('database.writes', {
    description: 'Writes by how they ended; divided by the commits, how many share one',
    tags: ['outcome'],
  });
  const stored = writes.with('outcome', 'stored');
  const refused = writes.with('outcome', 'failed');

  return {
    reads(operation) {
      const known = tallies.get(operation);
      if (known !== undefined) return known;
      const series = times.with('operation', operation);
      const tally: ReadTally = { count: 0, timed: (seconds) => series.record(seconds) };
      tallies.set(operation, tally);
      const options = { description: 'Reads by operation', tags: { operation } };
      metrics.counter('database.reads', options, () => tally.count);
      return tally;
    },
    batch(total, failed, seconds) {
      commits.record(seconds);
      stored.increment(total - failed);
      refused.increment(failed);
    },
  };
}
