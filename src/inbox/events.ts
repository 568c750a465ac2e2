import type { Logger } from 'pino';
import { describeError } from '../core/errors.ts';
import { storedTraceFields } from '../core/trace.ts';
import { limitedEntry } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import {
  type ClaimedJob,
  type DeliveryFacts,
  ENDPOINT_PREFIX,
  eventFields,
  isOwnSource,
  isTenantSource,
  type NewDelivery,
} from './delivery.ts';
import type { WorkerEvents } from './dispatch/worker.ts';
import type { Appended } from './inbox.ts';

/** One function per business event; each updates the log and the meters together. */
export interface Events extends WorkerEvents, Disposable {
  /** These targets are about to run. */
  begin(targets: readonly string[]): void;
  /** A delivery was acknowledged. `filtered`: its event has targets, but their filters all reject it. */
  appended(delivery: NewDelivery, appended: Appended, filtered?: boolean): void;
  /** A rule of a target threw. The delivery has a job for the target, whose attempts will fail. */
  ruleFailed(delivery: DeliveryFacts, target: string, error: unknown): void;
  /** A rule of a target returned an invalid priority or time, which was ignored. */
  ruleIgnored(delivery: DeliveryFacts, target: string, problem: TypeError): void;
  /** A request to a signed source was refused. */
  refused(source: string, reason: string): void;
}

/** The name under which meters count the attempts at all endpoints of customers. */
const ENDPOINTS = 'endpoints';

/** Longer target names are cut in the log, in characters: they contain event names. */
const MAX_TARGET = 200;

/** Longer error messages are cut in the log, in characters. */
const MAX_ERROR = 1_000;

/** From one fsync on a fast disk to the timeouts of senders, in seconds. */
const ACKNOWLEDGEMENT_BUCKETS = [0.002, 0.005, 0.025, 0.1, 0.5, 1, 5];

/** Creates the events. Disposing of them logs a count of the unhandled deliveries without a log entry. */
export function createEvents(
  log: Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>,
  metrics: Metrics,
): Events {
  using entries = new DisposableStack();
  const unhandledEntry = entries.use(limitedEntry(log, 'unhandled event'));
  const filteredEntry = entries.use(limitedEntry(log, 'delivery filtered', 'debug'));
  const ruleEntry = entries.use(limitedEntry(log, 'rule failed', 'error'));
  const ignoredEntry = entries.use(limitedEntry(log, 'rule ignored', 'warn'));
  const deliveries = metrics.counter('webhook.deliveries', {
    description: 'Acknowledged deliveries: stored, duplicate, or revived (a duplicate of a dead one)',
    tags: ['result'],
  });
  const acknowledgements = metrics.timer('webhook.acknowledgements', {
    description: 'Time from receiving a delivery to acknowledging it',
    buckets: ACKNOWLEDGEMENT_BUCKETS,
  });
  const attempts = metrics.counter('webhook.attempts', {
    description: 'Attempts by outcome, and by target: a handler or a forward address',
    tags: ['outcome', 'target'],
  });
  const unhandled = metrics.counter('webhook.unhandled', {
    description: 'Deliveries without a handler when they were received',
  });
  const filteredCount = metrics.counter('webhook.filtered', {
    description: 'Deliveries rejected by all filters when they were received',
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
  /** The meters of the attempts at a target, which exist before its first attempt: a rate needs their zero. */
  function countersOf(target: string) {
    const of = (outcome: string) => attempts.with('outcome', outcome, 'target', target.slice(0, MAX_TARGET));
    return {
      done: of('done'),
      retry: of('retry'),
      dead: of('dead'),
      released: of('released'),
      crashed: of('crashed'),
    };
  }
  const ended = new Map<string, ReturnType<typeof countersOf>>();
  const about = ({ delivery, target, attempt }: ClaimedJob) => ({
    delivery: delivery.id,
    ...eventFields(delivery),
    target: target.slice(0, MAX_TARGET),
    attempt,
    ...storedTraceFields(delivery.trace),
  });
  const received = (delivery: NewDelivery) => ({
    delivery: delivery.id,
    source: delivery.source,
    ...eventFields(delivery),
    ...storedTraceFields(delivery.trace),
  });

  const resources = entries.move();
  return {
    begin(targets) {
      for (const target of targets) ended.set(target, countersOf(target));
    },
    appended(delivery, appended, filtered = false) {
      const { source, jobs, receivedAt } = delivery;
      // Counted as events where they are published.
      if (isTenantSource(source)) return;
      result[appended].increment();
      if (!isOwnSource(source)) acknowledgements.record((Date.now() - receivedAt) / 1_000);
      if (appended === 'revived') {
        log.info(received(delivery), 'dead delivery received again, retrying');
      } else if (appended === 'stored' && filtered) {
        filteredCount.increment();
        filteredEntry.write(received(delivery));
      } else if (appended === 'stored' && jobs.length === 0) {
        // CONTRACT.md#events: any other event is logged as unhandled
        unhandled.increment();
        unhandledEntry.write(received(delivery));
      }
    },
    ruleFailed(delivery, target, error) {
      const fields = { delivery: delivery.id, ...eventFields(delivery), target };
      ruleEntry.write({ ...fields, error: describeError(error).slice(0, MAX_ERROR) });
    },
    ruleIgnored(delivery, target, problem) {
      const fields = { delivery: delivery.id, ...eventFields(delivery), target };
      ignoredEntry.write({ ...fields, error: problem.message });
    },
    refused(source, reason) {
      refusals.with('source', source, 'reason', reason).increment();
      log.warn({ source, reason }, 'request refused');
    },
    settled(job, outcome, error) {
      const isEndpoint = job.target.startsWith(ENDPOINT_PREFIX);
      // Endpoints are many, and one that fails is its owner's matter.
      const counted = isEndpoint ? ENDPOINTS : job.target;
      const counters = ended.get(counted) ?? countersOf(counted);
      ended.set(counted, counters);
      counters[outcome].increment();
      if (isEndpoint) {
        if (outcome === 'retry' || outcome === 'dead')
          log.debug({ ...about(job), err: error }, 'event not delivered');
      } else if (outcome === 'retry')
        log.warn({ ...about(job), err: error }, 'attempt failed, retry scheduled');
      else if (outcome === 'dead') log.error({ ...about(job), err: error }, 'delivery dead');
    },
    leaseLost(job) {
      log.warn(about(job), 'lease lost, another process may handle the delivery');
    },
    overdue(job) {
      log.error(
        about(job),
        'handler still running long after its signal was aborted, delivery no longer held',
      );
    },
    storeFailed(error) {
      log.error({ err: error }, 'inbox unavailable, retrying');
    },
    [Symbol.dispose]: () => resources.dispose(),
  };
}
