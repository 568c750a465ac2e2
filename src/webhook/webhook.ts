import type { FastifyPluginAsync } from 'fastify';
import { createEvents } from '../inbox/inbox-events.ts';
import { addBacklogMetrics } from '../inbox/observability/backlog-metrics.ts';
import { addClockMetrics } from '../inbox/observability/clock-metrics.ts';
import type { ReplayPlan } from '../inbox/replay-delivery.ts';
import { Metrics } from '../observability/metrics/metrics.ts';
import { createWebhookDoor } from './door.ts';
import { planOfReplay } from './event-names.ts';
import { createJobPlan } from './job-plan.ts';
import { readOptions, readWork, type WebhookOptions } from './options.ts';

// What the options are made of, for those who take only this door.
export type { HandlerSpec } from '../config/schema/module-handlers.ts';
export type { Condition, DeliveryFilter } from '../config/schema/webhook-condition.ts';
export type { ForwardConfig } from '../config/schema/webhook-forwards.ts';
export type { SourceConfig } from '../config/schema/webhook-sources.ts';
export type { Delivery } from '../inbox/delivery.ts';
export type { DeliveryHandler, HandlerContext } from '../inbox/handler.ts';
export { backlogCheck } from '../inbox/observability/backlog-check.ts';
export type { ReplayPlan } from '../inbox/replay-delivery.ts';
export type {
  DeliveryKey,
  DeliveryPredicate,
  DeliveryPriority,
  DeliveryTime,
} from '../inbox/rules/delivery-rule.ts';
export type { ReceivedDelivery } from '../inbox/rules/received-delivery.ts';
export type { DeliveryTransform, ForwardedDelivery, TransformedDelivery } from '../inbox/rules/transform.ts';
export type { WebhookOptions } from './options.ts';

/**
 * The webhook door (contract 4.4) as a Fastify plugin. It runs handlers once the application is ready, and finishes or
 * releases running attempts when the application closes. The opener of the inbox closes it after that. Fails with
 * ConfigError for invalid options.
 */
export const webhook: FastifyPluginAsync<WebhookOptions> = async (app, given) => {
  const { inbox, metrics } = given;
  const { stopTimeout, ...options } = readOptions(given);
  using building = new DisposableStack();
  // Without metrics the events count into meters of their own.
  const meters = metrics ?? building.use(new Metrics());
  if (metrics !== undefined) {
    addBacklogMetrics(metrics, inbox);
    addClockMetrics(metrics, inbox);
  }
  const events = building.use(createEvents(app.log, meters));
  const door = createWebhookDoor({ ...options, inbox, log: app.log, events });

  const resources = building.move();
  app.addHook('onReady', async () => door.start());
  app.addHook('onClose', async () => {
    using _ = resources;
    await door.stop(AbortSignal.timeout(stopTimeout));
  });
  door.addRoutes(app);
};

/**
 * The jobs that a delivery gets with these options, for `deliveries` of portico/management to replay it. Throws
 * ConfigError.
 */
export function replayPlan(options: Pick<WebhookOptions, 'handlers' | 'sources' | 'forward'>): ReplayPlan {
  const { handlers, sources, forwards } = readWork(options);
  return planOfReplay(createJobPlan(handlers, forwards), sources);
}
