/** The tables of a database besides those of relations, on any engine; a test looks at new databases. */
const PORTICO_TABLES: readonly string[] = [
  'api_tokens',
  'attempts',
  'audit_events',
  'checkpoints',
  'deliveries',
  'delivery_zones',
  'enqueued',
  'idempotency_keys',
  'imports',
  'inbox_size',
  'jobs',
  'migrations',
  'remembered_keys',
  'retention_cursors',
  'secrets',
  'targets',
  'webhook_endpoints',
  'webhook_event_types',
  'webhook_tenants',
  'user_changes',
  'user_events',
  'user_feed',
  'user_relay',
  'users',
];
/** The indexes of those tables, whose names no table of the same database can have. */
const PORTICO_INDEXES: readonly string[] = [
  'api_tokens_name',
  'attempts_job',
  'audit_events_age',
  'audit_events_kind',
  'deliveries_dedup',
  'deliveries_tenant',
  'jobs_endpoint',
  'webhook_endpoints_state',
  'webhook_endpoints_tenant',
  'idempotency_keys_expiry',
  'jobs_dead',
  'jobs_dead_target',
  'jobs_delivery',
  'jobs_due',
  'jobs_ended',
  'jobs_head',
  'jobs_held',
  'jobs_order',
  'jobs_quarantined',
  'remembered_keys_age',
  'user_events_position',
  'user_events_waiting',
  'users_email',
  'users_email_unique',
  'users_name',
];
/** The keys and sequences that PostgreSQL names itself. */
const NAMED_BY_POSTGRES = /_(?:pkey|key|seq)$/;
/**
 * The tables of the engines begin so, and those of the full text of users, of the changes of relations and of Portico's
 * later versions.
 */
const RESERVED_TABLE =
  /^(?:sqlite|pg|portico|users_text)_|^users_text$|^relation_(?:events|feed|relay)(?:_|$)/i;

/** Whether Portico or the database has a table, an index or a sequence of this name. */
export function isReserved(table: string): boolean {
  const name = table.toLowerCase();
  return (
    PORTICO_TABLES.includes(name) ||
    PORTICO_INDEXES.includes(name) ||
    RESERVED_TABLE.test(table) ||
    (NAMED_BY_POSTGRES.test(name) && PORTICO_TABLES.some((each) => name.startsWith(`${each}_`)))
  );
}
