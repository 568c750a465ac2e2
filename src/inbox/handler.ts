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
