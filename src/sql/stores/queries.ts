import { AUDIT_QUERIES, TOKEN_QUERIES } from './access-stores.ts';
import { DELIVERY_QUERIES } from './delivery-log.ts';
import { UPKEEP_QUERIES } from './inbox-upkeep.ts';
import { PRODUCER_QUERIES } from './producers.ts';
import { SENDING_QUERIES } from './sending.ts';
import { SENDING_LOG_QUERIES } from './sending-log.ts';
import type { Query } from './sql.ts';
import { USER_QUERIES } from './user-queries.ts';

/**
 * All statements of both engines: what the writer thread of SQLite can run of them, and what a test looks at
 * the plans of.
 */
export const SHARED_QUERIES: readonly Query[] = [
  TOKEN_QUERIES,
  AUDIT_QUERIES,
  DELIVERY_QUERIES,
  PRODUCER_QUERIES,
  SENDING_QUERIES,
  SENDING_LOG_QUERIES,
  UPKEEP_QUERIES,
  USER_QUERIES,
].flatMap((group) => Object.values(group));
