import type { NewDelivery } from '../../../inbox/delivery.ts';
import type { Appended } from '../../../inbox/inbox.ts';
import { DELIVERY_OVERHEAD } from '../../inbox-sql.ts';
import type { Server } from '../pool/server.ts';
import { storable, storableKey } from '../text.ts';
import { packBodies } from './packed-bodies.ts';
import { notAhead } from './server-clock.ts';

/** Rows of the table of sizes; several, so that processes do not contend for one. */
const SIZE_PARTS = 64;

/** SQL that adds the rows of `from`, with a column `bytes`, to the size of the inbox, or subtracts them. */
export const resize = (sign: '+' | '-', from: string) => `
  INSERT INTO inbox_size (part, bytes)
  SELECT pg_backend_pid() % ${SIZE_PARTS}, ${sign}(sum(bytes) + ${DELIVERY_OVERHEAD} * count(*)) FROM ${from} HAVING count(*) > 0
  ON CONFLICT (part) DO UPDATE SET bytes = inbox_size.bytes + excluded.bytes`;

/**
 * Stores a batch of deliveries with their jobs. The bodies are one value with the offset and length of each. The numbers
 * follow the order of arrival; the rows are stored in the order of their keys, and dead jobs locked in that of their
 * numbers, so that batches with the same deliveries wait for each other and never in a circle.
 */
const APPEND = {
  name: 'append',
  text: `
    WITH given AS MATERIALIZED (
      SELECT given.*, nextval((SELECT pg_get_serial_sequence('deliveries', 'seq'))::regclass) AS seq
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::int[], $7::int[],
        $8::bigint[], $9::text[]) WITH ORDINALITY
        AS given (id, source, event, data_pointer, content_type, starts, length, received_at, dedup_key, nth)),
    stored AS (
      INSERT INTO deliveries (seq, id, source, event, data_pointer, content_type, body, received_at, dedup_key)
      OVERRIDING SYSTEM VALUE
      SELECT seq, id, source, event, data_pointer, content_type, substring($10::bytea FROM starts FOR length),
        received_at, dedup_key
      FROM given ORDER BY source, dedup_key, seq
      ON CONFLICT (source, dedup_key) WHERE dedup_key IS NOT NULL DO NOTHING
      RETURNING seq, id, received_at, octet_length(body) AS bytes),
    added AS (
      INSERT INTO jobs (delivery, due_at, target, order_key)
      SELECT stored.seq, ${notAhead('stored.received_at')}, job.target, job.order_key
      FROM unnest($11::text[], $12::text[], $13::text[]) WITH ORDINALITY AS job (id, target, order_key, nth)
      JOIN stored USING (id) ORDER BY job.nth),
    dead AS MATERIALIZED (
      SELECT jobs.seq, given.id, given.received_at
      FROM given JOIN deliveries USING (source, dedup_key) JOIN jobs ON jobs.delivery = deliveries.seq
      WHERE given.dedup_key IS NOT NULL AND jobs.status = 'dead'
      ORDER BY jobs.seq FOR UPDATE OF jobs),
    revived AS (
      UPDATE jobs SET status = 'open', attempts = 0, deaths = 0, due_at = ${notAhead('dead.received_at')},
        owner = NULL, finished_at = NULL
      FROM dead WHERE jobs.seq = dead.seq AND jobs.status = 'dead'
      RETURNING dead.id),
    resized AS (${resize('+', 'stored')})
    SELECT id, 'stored' FROM stored UNION SELECT id, 'revived' FROM revived`,
};

/** Stores deliveries and their jobs in one statement; resolves to the result of each. */
export async function appendAll(
  server: Server,
  deliveries: readonly NewDelivery[],
): Promise<readonly Appended[]> {
  const { starts, lengths, bytes } = packBodies(deliveries.map(({ body }) => body));
  const jobs = deliveries.flatMap(({ id, jobs }) => jobs.map((job) => ({ id, ...job })));
  const rows = await server.write(APPEND, [
    deliveries.map(({ id }) => id),
    deliveries.map(({ source }) => storable(source)),
    deliveries.map(({ event }) => storable(event)),
    deliveries.map(({ dataPointer }) => storable(dataPointer)),
    deliveries.map(({ contentType }) => storable(contentType)),
    starts,
    lengths,
    deliveries.map(({ receivedAt }) => receivedAt),
    deliveries.map(({ dedupKey }) => storableKey(dedupKey)),
    bytes,
    jobs.map(({ id }) => id),
    jobs.map(({ target }) => storable(target)),
    jobs.map(({ orderKey }) => storableKey(orderKey)),
  ]);
  const results = new Map(rows as readonly (readonly [string, Appended])[]);
  return deliveries.map(({ id }) => results.get(id) ?? 'duplicate');
}
