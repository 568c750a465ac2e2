import type { Logger } from 'pino';
import type { Metrics } from './metrics.ts';

/** One function per business event, each feeding the log and the meters together. */
export interface Events {
  deliveryStored(delivery: {
    readonly id: string;
    readonly event: string | null;
    readonly handled: boolean;
  }): void;
  deliverySettled(
    delivery: { readonly id: string; readonly event: string },
    outcome: 'done' | 'failed' | 'unhandled',
    error?: unknown,
  ): void;
}

/** Longer event names are cut in the log: a sender chooses them. */
const MAX_NAME = 200;

export function createEvents(log: Logger, metrics: Metrics): Events {
  const stored = metrics.counter('webhook.deliveries.stored', {
    description: 'Deliveries that were stored and acknowledged',
  });
  const settled = metrics.counter('webhook.deliveries.settled', {
    description: 'Deliveries by how their handling ended',
    tags: ['outcome'],
  });
  const outcomes = {
    done: settled.with('outcome', 'done'),
    failed: settled.with('outcome', 'failed'),
    unhandled: settled.with('outcome', 'unhandled'),
  };

  // contract 6: any other event is logged as unhandled
  function unhandled(id: string, event: string | null): void {
    outcomes.unhandled.increment();
    log.info({ delivery: id, event: event?.slice(0, MAX_NAME) ?? null }, 'unhandled event');
  }

  return {
    deliveryStored({ id, event, handled }) {
      stored.increment();
      if (!handled) unhandled(id, event);
    },
    deliverySettled({ id, event }, outcome, error) {
      if (outcome === 'unhandled') return unhandled(id, event);
      outcomes[outcome].increment();
      if (outcome === 'failed') {
        log.error({ delivery: id, event: event.slice(0, MAX_NAME), err: error }, 'event handler failed');
      }
    },
  };
}
