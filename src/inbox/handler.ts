import type { Delivery } from './delivery.ts';

/** Writes one log line: a message, or details and a message. */
export interface HandlerLogMethod {
  (message: string): void;
  (details: Readonly<Record<string, unknown>>, message: string): void;
}

/** The log of one delivery; every line carries the delivery's id and event. */
export interface HandlerLog {
  readonly debug: HandlerLogMethod;
  readonly info: HandlerLogMethod;
  readonly warn: HandlerLogMethod;
  readonly error: HandlerLogMethod;
}

/** What a handler gets beside its delivery. */
export interface HandlerContext {
  /** Aborted when the handler takes too long or the process stops. */
  readonly signal: AbortSignal;
  readonly log: HandlerLog;
}

/**
 * Processes one delivery. It succeeded once it returns or resolves; when it throws or rejects it is tried again.
 * It may see the same delivery more than once, so its effects should be idempotent by `delivery.id`.
 */
export type DeliveryHandler = (delivery: Delivery, context: HandlerContext) => void | Promise<void>;

/** A handler with limits of its own; what is left out is as the options of the webhook door say. Times are in milliseconds. */
export interface HandlerSpec {
  readonly handler: DeliveryHandler;
  /** Deliveries at the same time. */
  readonly concurrency?: number;
  /** An attempt may take this long. */
  readonly timeout?: number;
  /** After so many a delivery is dead. */
  readonly attempts?: number;
  /** Where in the body (RFC 6901) the key is whose deliveries are handled one after the other, in order of arrival. */
  readonly order?: string;
}
