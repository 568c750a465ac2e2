import type { Delivery } from './delivery.ts';

/** Writes one log entry: a message, or fields and a message. */
export interface HandlerLogMethod {
  (message: string): void;
  (fields: Readonly<Record<string, unknown>>, message: string): void;
}

/** The log of one delivery; every entry has the delivery's id and event. */
export interface HandlerLog {
  readonly debug: HandlerLogMethod;
  readonly info: HandlerLogMethod;
  readonly warn: HandlerLogMethod;
  readonly error: HandlerLogMethod;
}

/** What a handler gets beside its delivery. */
export interface HandlerContext {
  /**
   * Aborts at the timeout, when the process stops, and when the lease of the delivery is lost: then another process may
   * handle it, and the reason has the code `LEASE_LOST`.
   */
  readonly signal: AbortSignal;
  readonly log: HandlerLog;
  /**
   * The headers that continue the trace of the sender, `traceparent` and perhaps `tracestate`, for what the handler
   * calls; none when the delivery came without a trace.
   */
  readonly trace: Readonly<Record<string, string>>;
}

/**
 * Handles one delivery. It has succeeded when it returns or resolves; when it throws or rejects, it is retried.
 * It may get the same delivery more than once, so its effects should be idempotent by `delivery.id`.
 */
export type DeliveryHandler = (delivery: Delivery, context: HandlerContext) => void | Promise<void>;
