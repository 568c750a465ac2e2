import { Dispatcher } from './inbox/dispatcher.ts';
import type { Parts } from './parts.ts';
import { contractHandlers } from './webhook/contract-handlers.ts';
import { webhookErrors } from './webhook/error-format.ts';
import { webhook } from './webhook/webhook.ts';

/** Wires the webhook door; the dispatcher that it returns is started once all doors listen. */
export function openWebhookDoor({ config, log, events, database, listener }: Parts): Dispatcher {
  const { inbox } = database();
  const handlers = new Map([...Object.entries(contractHandlers), ...config.code.handlers]);
  const dispatcher = new Dispatcher({ inbox, handlers, log, onSettled: events.deliverySettled });
  listener('webhook', webhookErrors).register(webhook, {
    inbox,
    secrets: config.settings['webhook.secret'] ?? [],
    handles: (event) => handlers.has(event),
    onStored(delivery) {
      events.deliveryStored(delivery);
      if (delivery.handled) dispatcher.wake();
    },
  });
  return dispatcher;
}
