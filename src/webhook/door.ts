import type { FastifyInstance } from 'fastify';
import type { Events } from '../inbox/inbox-events.ts';
import type { WebhookNumbers } from './options.ts';
import { RECEIVER_PATH, receiver } from './receiver/receiver.ts';
import type { WebhookSettings } from './settings.ts';
import { createWork, type WebhookWork, type WorkOptions } from './work.ts';

/** What a webhook door is made of. */
export interface WebhookDoorOptions extends WebhookSettings, Pick<WorkOptions, 'inbox' | 'handlers' | 'log'> {
  readonly numbers: WebhookNumbers;
  readonly events: Events;
  /** The secrets that /webhook accepts now. */
  secrets(): readonly string[];
}

/** A webhook door before it starts: its routes, and the work behind them. */
export interface WebhookDoor {
  readonly work: WebhookWork;
  addRoutes(app: FastifyInstance): void;
}

const DAY = 86_400_000;

/** Puts the receiver and the work behind it together. Throws UnusableSecretError. */
export function createWebhookDoor(options: WebhookDoorOptions): WebhookDoor {
  const { inbox, handlers, sources, forwards, log, events, secrets } = options;
  const { attempts, timeout, concurrency, backoff, maxBackoff, retention, ...numbers } = options.numbers;
  const { maxBodyBytes, maxBytesInFlight, ...work } = numbers;
  const doorWork = createWork({
    ...work,
    inbox,
    handlers,
    forwards,
    defaults: { concurrency, timeout, maxAttempts: attempts, backoff: { base: backoff, cap: maxBackoff } },
    retention: retention * DAY,
    log,
    events,
  });
  return {
    work: doorWork,
    addRoutes(app) {
      app.register(receiver, {
        prefix: RECEIVER_PATH,
        inbox,
        secrets,
        sources,
        plan: doorWork.plan,
        maxBodyBytes,
        maxBytesInFlight,
        onAppended(delivery, appended) {
          events.appended(delivery, appended);
          doorWork.wake(delivery);
        },
        onRefused: events.refused,
      });
    },
  };
}
