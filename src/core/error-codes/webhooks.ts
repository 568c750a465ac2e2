import type { ErrorEntries } from './entry.ts';

/** Codes of the webhook door and of what handles deliveries. */
export const WEBHOOK_CODES = {
  LEASE_LOST: {
    text: 'An attempt went on longer than its lease was sure to last, so another process may handle the delivery; stop what it does.',
  },
  ATTEMPT: { text: 'An attempt to forward a delivery failed; it is repeated if that can help.' },
  REFUSED: {
    status: 401,
    text: 'The signature of a delivery is missing or wrong; compare the secrets of both sides.',
  },
  WRONG_TOKEN: {
    status: 401,
    text: 'The token in x-webhook-token is missing or wrong; send the configured one.',
  },
} as const satisfies ErrorEntries;
