import type pg from 'pg';

/** Settings of a server that is filled: what is stored in bulk goes into no log, and no vacuum runs beside the measuring. */
export const BULK_SETTINGS = {
  shared_buffers: '1GB',
  maintenance_work_mem: '512MB',
  max_wal_size: '16GB',
  checkpoint_timeout: '1h',
  wal_level: 'minimal',
  max_wal_senders: '0',
  autovacuum: 'off',
};

const DAY = 24 * 60 * 60 * 1_000;

/** How large an inbox is made, and over how long a time its deliveries came. */
export interface Extent {
  readonly rows: number;
  /** Size of each body, in bytes; a multiple of 16. */
  readonly body: number;
  /** When the first delivery came, in milliseconds since the epoch; the others follow at equal distances. */
  readonly since: number;
  readonly days: number;
  /** One of so many deliveries is open, another one dead; the others are done. */
  readonly openEvery: number;
}

/** What has to be dropped before the rows are stored, and made again behind them: by far the faster way. */
const PARTS = `
  SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname),
    format('ALTER TABLE %s ADD CONSTRAINT %I %s%s', conrelid::regclass, conname, pg_get_constraintdef(oid),
      CASE contype WHEN 'f' THEN ' NOT VALID' ELSE '' END),
    CASE contype WHEN 'f' THEN 2 ELSE 1 END
  FROM pg_constraint WHERE conrelid IN ('deliveries'::regclass, 'jobs'::regclass) AND contype IN ('p', 'u', 'f')
  UNION ALL
  SELECT format('DROP INDEX %s', indexrelid::regclass), pg_get_indexdef(indexrelid), 1 FROM pg_index
  WHERE indrelid IN ('deliveries'::regclass, 'jobs'::regclass)
    AND indexrelid NOT IN (SELECT conindid FROM pg_constraint WHERE conindid IS NOT NULL)
  ORDER BY 3`;

/** Fills the empty inbox of a database in one go. Resolves once it is vacuumed and on the disk. */
export async function fill(client: pg.Client, extent: Extent): Promise<void> {
  const { rows, body, since, days, openEvery } = extent;
  const parts = (await client.query<string[]>({ text: PARTS, rowMode: 'array' })).rows;
  const source = `
    SELECT n, ${since} + n * ${days * DAY}::bigint / ${rows} AS at FROM generate_series(1, ${rows}) AS n`;
  await client.query('BEGIN; SET LOCAL session_replication_role = replica; TRUNCATE deliveries, jobs');
  for (const [drop = ''] of parts.toReversed()) await client.query(drop);
  await client.query(`
    INSERT INTO deliveries (seq, id, source, event, data_pointer, content_type, received_at, dedup_key, body)
    OVERRIDING SYSTEM VALUE
    SELECT n, lpad(n::text, 20, '0') || left(md5(n::text), 16), 'source', 'event', '/data', 'application/json', at,
      md5(n::text), decode(repeat(md5(n::text), ${body / 16}), 'hex')
    FROM (${source}) AS each`);
  await client.query(`
    INSERT INTO jobs (seq, delivery, target, status, attempts, due_at, finished_at, duration, ended_by)
    OVERRIDING SYSTEM VALUE
    SELECT n, n, 't', CASE n % ${openEvery} WHEN 0 THEN 'open' WHEN 1 THEN 'dead' ELSE 'done' END,
      CASE n % ${openEvery} WHEN 0 THEN 0 ELSE 1 END, at, CASE WHEN n % ${openEvery} > 0 THEN at + 50 END,
      CASE WHEN n % ${openEvery} > 1 THEN 5 END, CASE WHEN n % ${openEvery} > 1 THEN 'process' END
    FROM (${source}) AS each`);
  for (const [, make = ''] of parts) await client.query(make);
  await client.query(`
    INSERT INTO inbox_size VALUES (0, ${rows} * ${body + 500}::bigint);
    SELECT setval(pg_get_serial_sequence('deliveries', 'seq'), ${rows}), setval(pg_get_serial_sequence('jobs', 'seq'), ${rows});
    COMMIT`);
  await client.query('VACUUM (ANALYZE) deliveries, jobs');
  await client.query('CHECKPOINT');
}
