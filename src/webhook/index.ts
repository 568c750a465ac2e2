// The entry `portico/webhook` of the package.
export type { HandlerSpec } from '../config/schema/code.ts';
export type { Condition, DeliveryFilter, ForwardConfig, SourceConfig } from '../config/schema/webhook.ts';
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
export type { WebhookOptions } from './webhook.ts';
export { replayPlan, webhook } from './webhook.ts';
