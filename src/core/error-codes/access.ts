import type { ErrorEntries } from './entry.ts';

/** Codes of credentials, at every door that asks for them. */
export const ACCESS_CODES = {
  LACKS_SCOPE: {
    status: 403,
    text: 'The credentials lack the scope for this, which WWW-Authenticate names; use others.',
  },
  NO_KEYS: {
    status: 503,
    text: 'The keys of the identity provider cannot be read; try again after Retry-After.',
  },
  OVERLOADED: {
    status: 503,
    text: 'The service is later than its limits allow; try again after Retry-After.',
  },
  RATE_LIMITED: {
    status: 429,
    text: 'The client has made more requests than its rate allows; wait for the time in Retry-After.',
  },
  TOO_MANY_ATTEMPTS: {
    status: 429,
    text: 'Too many wrong credentials came from this address; wait for the time in Retry-After.',
  },
  TOO_MANY_LOGINS: {
    status: 503,
    text: 'Too many passwords are being checked; try again after Retry-After.',
  },
  UNAUTHORIZED: {
    status: 401,
    text: 'The request has no valid credentials; send those that WWW-Authenticate asks for.',
  },
} as const satisfies ErrorEntries;
