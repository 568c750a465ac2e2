import { DELIVERY_BYTES, DELIVERY_OVERHEAD } from '../inbox-sql.ts';

/** Maximum number of deliveries in a zone; a lookup by id scans all of them. */
export const ZONE = 512;

/** The last delivery of the last zone. */
const END = '(SELECT coalesce(max(last_seq), 0) FROM delivery_zones)';

/** Groups the deliveries after the last zone into zones. */
export const ADD_ZONES = `
  INSERT INTO delivery_zones (last_seq, first_seq, first_id, last_id)
  SELECT max(seq), min(seq), min(id), max(id) FROM deliveries WHERE seq > ${END}
  GROUP BY (seq - ${END} - 1) / ${ZONE}`;

/** The zone of the delivery `?1`; no row if it is in none. */
export const ZONE_OF = `
  SELECT last_seq FROM (
    SELECT last_seq, first_seq FROM delivery_zones WHERE last_seq >= ?1 ORDER BY last_seq LIMIT 1)
  WHERE first_seq <= ?1`;

/** Removes the zone that ends with the delivery `?1` if it is empty. */
export const PRUNE_ZONE = `
  DELETE FROM delivery_zones
  WHERE last_seq = ?1 AND NOT EXISTS (SELECT 1 FROM deliveries WHERE seq BETWEEN first_seq AND last_seq)`;

const TAIL_BYTES = `
  (SELECT coalesce(sum(${DELIVERY_BYTES} + ${DELIVERY_OVERHEAD}), 0) FROM deliveries WHERE seq > ${END})`;

/**
 * Adds the deliveries after the last zone to the size of the inbox; ADD_ZONES follows in the same
 * transaction. This counts sizes once per zone instead of at every append.
 */
export const COUNT_TAIL = `UPDATE inbox_size SET bytes = bytes + ${TAIL_BYTES} WHERE part = 0`;

/**
 * Total size of all deliveries in bytes: zones are counted already, the few deliveries after them are summed.
 */
export const SIZE = `SELECT bytes + ${TAIL_BYTES} AS size FROM inbox_size WHERE part = 0`;

/**
 * The `seq` of the delivery with the id `?1`: after the last zone, or in a zone whose range of ids includes
 * it. "+" prevents an automatic index over all deliveries.
 */
export const SEQ_OF_ID = `
  SELECT seq FROM deliveries WHERE seq > ${END} AND id = ?1
  UNION ALL
  SELECT seq FROM delivery_zones CROSS JOIN deliveries ON seq BETWEEN first_seq AND last_seq
  WHERE ?1 BETWEEN first_id AND last_id AND +id = ?1
  LIMIT 1`;

/**
 * Up to `?3` ids from `?1`, inclusive, to `?2`, exclusive, found like SEQ_OF_ID: most zones that overlap
 * contain a match.
 */
export const IDS_BETWEEN = `
  SELECT id FROM deliveries WHERE seq > ${END} AND id >= ?1 AND id < ?2
  UNION ALL
  SELECT id FROM delivery_zones CROSS JOIN deliveries ON seq BETWEEN first_seq AND last_seq
  WHERE last_id >= ?1 AND first_id < ?2 AND +id >= ?1 AND +id < ?2
  LIMIT ?3 + 0`;
