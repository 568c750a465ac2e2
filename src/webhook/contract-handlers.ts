import type { DeliveryHandler } from '../inbox/handler.ts';

/**
 * The events that the contract names (contract 6); what follows beyond logging is for the user's own handlers. The log
 * of a handler names the delivery and its event by itself.
 */
export const contractHandlers: Readonly<Record<string, DeliveryHandler>> = {
  new_commit: (_delivery, { log }) => {
    log.info('commit notification processed');
  },
  payment_received: (_delivery, { log }) => {
    log.info('payment notification processed');
  },
};
