import type { DeliveryHandler } from '../inbox/handler.ts';

/** The events that the contract names (contract 6); what follows beyond logging is for the user's own handlers. */
export const contractHandlers: Readonly<Record<string, DeliveryHandler>> = {
  new_commit: ({ id, event }, { log }) => {
    log.info({ delivery: id, event }, 'commit notification processed');
  },
  payment_received: ({ id, event }, { log }) => {
    log.info({ delivery: id, event }, 'payment notification processed');
  },
};
