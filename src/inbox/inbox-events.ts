import type { Logger } from 'pino';
import { limitedEntry } from '../observability/log/limited-entry.ts';
import type { Metrics } from '../observability/metrics/metrics.ts';
import type { ClaimedJob, NewDelivery } from './delivery.ts';
import type { WorkerEvents } from './dispatch/worker.ts';
import type { Appended } from './inbox.ts';

/** One function per business event, each feeding the log and the meters together. */
export interface Events extends WorkerEvents, Disposable {
  /** A delivery was acknowledged. */
  appended(delivery: NewDelivery, appended: Appended): void;
  /** A request of a signed source was refused. */
  refused(source: string, reason: string): void;
}

/** Senders choose event names; longer ones are cut in the log, in characters. */
const MAX_NAME = 200;

/** From one fsync of a fast disk to the timeouts of senders, in seconds. */
const ACKNOWLEDGEMENT_BUCKETS = [0.002, 0.005, 0.025, 0.1, 0.5, 1, 5];

/** Creates the events. Disposing of them logs how many unhandled deliveries have no log entry yet. */
export function createEvents(log: Pick<Logger, 'info' | 'warn' | 'error'>, metrics: Metrics): Events {
  const unhandledEntry = limitedEntry(log, 'unhandled event');
  const deliveries = metrics.counter('webhook.deliveries', {
    description: 'Acknowledged deliveries: stored, duplicate, or revived (a duplicate of a dead one)',
    tags: ['result'],
  });
  const acknowledgements = metrics.timer('webhook.acknowledgements', {
    description: 'Time from receiving a delivery to acknowledging it',
    buckets: ACKNOWLEDGEMENT_BUCKETS,
  });
  const attempts = metrics.counter('webhook.attempts', {
    description: 'Attempts of handlers and forward addresses, by outcome',
    tags: ['outcome'],
  });
  const unhandled = metrics.counter('webhook.unhandled', {
    description: 'Deliveries without a handler when they were received',
  });
  const refusals = metrics.counter('webhook.refused', {
    description: 'Refused requests of signed sources, by source and reason',
    tags: ['source', 'reason'],
  });
  const result = {
    stored: deliveries.with('result', 'stored'),
    duplicate: deliveries.with('result', 'duplicate'),
    revived: deliveries.with('result', 'revived'),
  };
  const ended = {
    done: attempts.with('outcome', 'done'),
    retry: attempts.with('outcome', 'retry'),
    dead: attempts.with('outcome', 'dead'),
    released: attempts.with('outcome', 'released'),
    died: attempts.with('outcome', 'died'),
  };
  const about = ({ delivery: { id, event }, target, attempt }: ClaimedJob) => ({
    delivery: id,
    event: event?.slice(0, MAX_NAME) ?? null,
    target: target.slice(0, MAX_NAME),
    attempt,
  });

  return {
    appended({ id, source, event, jobs, receivedAt }, appended) {
      result[appended].increment();
      acknowledgements.record((Date.now() - receivedAt) / 1_000);
      const fields = { source, event: event?.slice(0, MAX_NAME) ?? null };
      if (appended === 'revived') {
        log.info({ delivery: id, ...fields }, 'dead delivery received again, retrying');
      } else if (appended === 'stored' && jobs.length === 0) {
        // contract 6: any other event is logged as unhandled
        unhandled.increment();
        unhandledEntry.info({ delivery: id, ...fields });
      }
    },
    refused(source, reason) {
      refusals.with('source', source, 'reason', reason).increment();
      log.warn({ source, reason }, 'request refused');
    },
    settled(job, outcome, error) {
      ended[outcome].increment();
      if (outcome === 'retry') log.warn({ ...about(job), err: error }, 'attempt failed, retry scheduled');
      else if (outcome === 'dead') log.error({ ...about(job), err: error }, 'delivery dead');
    },
    leaseLost(job) {
      log.warn(about(job), 'lease lost, another process may handle the delivery');
    },
    overdue(job) {
      log.error(about(job), 'handler still running long after its signal, delivery no longer held');
    },
    storeFailed(error) {
      log.error({ err: error }, 'inbox unavailable, retrying');
    },
    [Symbol.dispose]: () => unhandledEntry[Symbol.dispose](),
  };
}
