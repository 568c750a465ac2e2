import type { Logger } from 'pino';
import type { Settings } from './config/options.ts';
import type { ClaimedJob } from './inbox/delivery.ts';
import { Dispatcher } from './inbox/dispatcher.ts';
import type { HandlerSpec } from './inbox/handler.ts';
import type { Parts } from './parts.ts';
import { contractHandlers } from './webhook/contract-handlers.ts';
import { webhookErrors } from './webhook/error-format.ts';
import { handlerTarget, type TargetDefaults } from './webhook/handler-target.ts';
import { createJobPlan } from './webhook/job-plan.ts';
import { webhook } from './webhook/webhook.ts';

/** Wires the webhook door; the dispatcher that it returns is started once all doors listen. */
export function openWebhookDoor({ config, log, events, database, listener }: Parts): Dispatcher {
  const { settings, code } = config;
  const { inbox } = database();
  const handlers = new Map<string, HandlerSpec>([
    ...Object.entries(contractHandlers).map(([event, handler]) => [event, { handler }] as const),
    ...code.handlers,
  ]);
  const logOf = ({ delivery: { id, event }, attempt }: ClaimedJob): Logger =>
    log.child({ delivery: id, event, attempt });
  const dispatcher = new Dispatcher({
    inbox,
    targets: [...handlers].map(([event, spec]) =>
      handlerTarget(event, spec, targetDefaults(settings), logOf),
    ),
    lease: settings['webhook.lease'],
    events,
  });
  listener('webhook', webhookErrors).register(webhook, {
    inbox,
    secrets: settings['webhook.secret'] ?? [],
    plan: createJobPlan(handlers),
    onAppended(delivery, appended) {
      events.appended(delivery, appended);
      for (const { target } of delivery.jobs) dispatcher.wake(target);
    },
  });
  return dispatcher;
}

function targetDefaults(settings: Settings): TargetDefaults {
  return {
    concurrency: settings['webhook.concurrency'],
    timeout: settings['webhook.timeout'],
    maxAttempts: settings['webhook.attempts'],
    backoff: { base: settings['webhook.backoff'], cap: settings['webhook.maxBackoff'] },
  };
}
