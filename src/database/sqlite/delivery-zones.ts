/** So many deliveries are in a zone at the most, and are looked at where an id may be. */
export const ZONE = 512;

/** The last delivery that is in a zone. */
const END = '(SELECT coalesce(max(last_seq), 0) FROM delivery_zones)';

/** Puts all deliveries behind the last zone into zones. */
export const ADD_ZONES = `
  INSERT INTO delivery_zones (last_seq, first_seq, first_id, last_id)
  SELECT max(seq), min(seq), min(id), max(id) FROM deliveries WHERE seq > ${END}
  GROUP BY (seq - ${END} - 1) / ${ZONE}`;

/** Removes the zones that are empty now, of those that held one of the deliveries `?`, a JSON array of their `seq`. */
export const PRUNE_ZONES = `
  DELETE FROM delivery_zones
  WHERE last_seq >= (SELECT min(value) FROM json_each(?1)) AND first_seq <= (SELECT max(value) FROM json_each(?1))
    AND NOT EXISTS (SELECT 1 FROM deliveries WHERE seq BETWEEN first_seq AND last_seq)`;

/**
 * The `seq` of the delivery with the id `?1`: behind the last zone, or in one of those whose ids are around it. "+" keeps
 * SQLite from making an index of all deliveries for it.
 */
export const SEQ_OF_ID = `
  SELECT seq FROM deliveries WHERE seq > ${END} AND id = ?1
  UNION ALL
  SELECT seq FROM delivery_zones CROSS JOIN deliveries ON seq BETWEEN first_seq AND last_seq
  WHERE ?1 BETWEEN first_id AND last_id AND +id = ?1
  LIMIT 1`;
