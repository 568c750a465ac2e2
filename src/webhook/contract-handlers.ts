import type { HandlerSpec } from '../config/schema/module-handlers.ts';
import type { DeliveryHandler } from '../inbox/handler.ts';
import { senderNames } from './event-names.ts';
import type { SourceSettings } from './sources/source.ts';

/** The handlers of the events in the contract (contract 6), which log. */
export const contractHandlers: Readonly<Record<string, DeliveryHandler>> = {
  new_commit: (_delivery, { log }) => {
    log.info('commit notification processed');
  },
  payment_received: (_delivery, { log }) => {
    log.info('payment notification processed');
  },
};

/**
 * The user's handlers with those of the contract. One of the contract steps aside once the user has a handler for its
 * event, under either of its names: it would mark what the user means to handle as done.
 */
export function withContractHandlers(
  own: ReadonlyMap<string, HandlerSpec>,
  sources: readonly SourceSettings[],
): ReadonlyMap<string, HandlerSpec> {
  const handlers = new Map(own);
  for (const [event, handler] of Object.entries(contractHandlers)) {
    const names = [event, ...sources.flatMap((source) => senderNames(source, event))];
    if (!names.some((name) => own.has(name))) handlers.set(event, { handler });
  }
  return handlers;
}
