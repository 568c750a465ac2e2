import type { ErrorEntries } from './entry.ts';

/** Codes of the database. */
export const DATABASE_CODES = {
  CONNECTION_LOST: { text: 'A connection to PostgreSQL broke during a statement; see OUTCOME_UNKNOWN.' },
  OUTCOME_UNKNOWN: {
    status: 503,
    text: 'The database did not confirm a write that was sent; check whether it is stored before you repeat it.',
  },
  READ_ONLY_SERVER: { text: 'The PostgreSQL server is a replica; name the primary in the URL.' },
  STORE_UNAVAILABLE: {
    status: 503,
    text: 'The database cannot answer now and nothing was stored; try again after the time in Retry-After.',
  },
  UNCONFIRMED: { text: 'PostgreSQL committed, but no replica confirmed it; see OUTCOME_UNKNOWN.' },
} as const satisfies ErrorEntries;
