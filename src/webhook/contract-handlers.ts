import type { DeliveryHandler } from '../inbox/handler.ts';

/** The handlers of the events in the contract (contract 6), which log; users replace them with their own. */
export const contractHandlers: Readonly<Record<string, DeliveryHandler>> = {
  new_commit: (_delivery, { log }) => {
    log.info('commit notification processed');
  },
  payment_received: (_delivery, { log }) => {
    log.info('payment notification processed');
  },
};
