// The entry `portico/webhook` of the package.
export type { Condition, DeliveryFilter, ForwardConfig, HandlerSpec } from '../inbox/config.ts';
export type {
  Delivery,
  DeliveryHandler,
  DeliveryKey,
  DeliveryPredicate,
  DeliveryPriority,
  DeliveryTime,
  DeliveryTransform,
  ForwardedDelivery,
  HandlerContext,
  ReceivedDelivery,
  TransformedDelivery,
} from '../inbox/delivery.ts';
export { backlogCheck } from '../inbox/health.ts';
export type { ReplayPlan } from '../inbox/operations.ts';
export type { SourceConfig } from '../signatures/config.ts';
export { replayPlan, type WebhookOptions, webhook } from './webhook.ts';
