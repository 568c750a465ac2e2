import type { Logger } from 'pino';
import type { RepeatedEntry } from '../observability/log/repeated-entry.ts';
import type { Metrics } from '../observability/metrics/metrics.ts';
import type { ClaimedJob, NewDelivery } from './delivery.ts';
import type { Appended, Outcome } from './inbox.ts';

/** One function per business event, each feeding the log and the meters together. */
export interface Events {
  /** A delivery was acknowledged. */
  appended(delivery: NewDelivery, appended: Appended): void;
  /** A request of a signed source was refused. */
  refused(source: string, reason: string): void;
  /** An attempt ended and was recorded. */
  settled(job: ClaimedJob, outcome: Outcome['kind'], error?: unknown): void;
  /** An attempt outlived its lease, so another process may have made one too. */
  leaseLost(job: ClaimedJob): void;
  /** The inbox could not be asked; it is asked again. */
  storeFailed(error: unknown): void;
}

/** What is logged of an event that nothing handles. */
export const UNHANDLED = 'unhandled event';

/** Longer event names are cut in the log: a sender chooses them. */
const MAX_NAME = 200;

/** From one sync of a fast disk to what senders no longer wait for, in seconds. */
const ACKNOWLEDGED_IN = [0.002, 0.005, 0.025, 0.1, 0.5, 1, 5];

/** `unhandledEntry` logs that nothing handles an event, faster than `log` does. */
export function createEvents(
  log: Pick<Logger, 'info' | 'warn' | 'error'>,
  metrics: Metrics,
  unhandledEntry: RepeatedEntry = (delivery, _key, fixed) => log.info({ delivery, ...fixed }, UNHANDLED),
): Events {
  const deliveries = metrics.counter('webhook.deliveries', {
    description:
      'Deliveries that were acknowledged: stored, known already (duplicate), or known and dead (revived)',
    tags: ['result'],
  });
  const acknowledgements = metrics.timer('webhook.acknowledgements', {
    description: 'From the arrival of a delivery until it could be acknowledged, to the millisecond',
    buckets: ACKNOWLEDGED_IN,
  });
  const attempts = metrics.counter('webhook.attempts', {
    description: 'Attempts to handle a delivery, by how they ended',
    tags: ['outcome'],
  });
  const unhandled = metrics.counter('webhook.unhandled', {
    description: 'Deliveries that nothing handled when they came',
  });
  const refusals = metrics.counter('webhook.refused', {
    description: 'Requests of signed sources that were refused, by source and reason',
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
      const details = { source, event: event?.slice(0, MAX_NAME) ?? null };
      if (appended === 'revived') {
        log.info({ delivery: id, ...details }, 'dead delivery came again, trying it again');
      } else if (appended === 'stored' && jobs.length === 0) {
        // contract 6: any other event is logged as unhandled
        unhandled.increment();
        unhandledEntry(id, `${source} ${event === null ? '' : `=${details.event}`}`, details);
      }
    },
    refused(source, reason) {
      refusals.with('source', source, 'reason', reason).increment();
      log.warn({ source, reason }, 'request refused');
    },
    settled(job, outcome, error) {
      ended[outcome].increment();
      if (outcome === 'retry') log.warn({ ...about(job), err: error }, 'attempt failed, will be tried again');
      else if (outcome === 'dead') log.error({ ...about(job), err: error }, 'delivery is dead');
    },
    leaseLost(job) {
      log.warn(about(job), 'attempt outlived its lease; its end was not recorded');
    },
    storeFailed(error) {
      log.error({ err: error }, 'the inbox does not answer');
    },
  };
}
