/** Maximum number of deliveries in a zone, all of which a lookup by id scans. */
export const ZONE = 512;

/** The last delivery of the last zone. */
const END = '(SELECT coalesce(max(last_seq), 0) FROM delivery_zones)';

/** Puts the deliveries after the last zone into zones. */
export const ADD_ZONES = `
  INSERT INTO delivery_zones (last_seq, first_seq, first_id, last_id)
  SELECT max(seq), min(seq), min(id), max(id) FROM deliveries WHERE seq > ${END}
  GROUP BY (seq - ${END} - 1) / ${ZONE}`;

/** Removes the empty zones among those of the deliveries `?1`, a JSON array of `seq`. */
export const PRUNE_ZONES = `
  DELETE FROM delivery_zones
  WHERE last_seq >= (SELECT min(value) FROM json_each(?1)) AND first_seq <= (SELECT max(value) FROM json_each(?1))
    AND NOT EXISTS (SELECT 1 FROM deliveries WHERE seq BETWEEN first_seq AND last_seq)`;

/**
 * The `seq` of the delivery with the id `?1`: after the last zone, or in a zone whose range contains it. "+" prevents an
 * automatic index over all deliveries.
 */
export const SEQ_OF_ID = `
  SELECT seq FROM deliveries WHERE seq > ${END} AND id = ?1
  UNION ALL
  SELECT seq FROM delivery_zones CROSS JOIN deliveries ON seq BETWEEN first_seq AND last_seq
  WHERE ?1 BETWEEN first_id AND last_id AND +id = ?1
  LIMIT 1`;

/** Up to `?3` ids from `?1` to below `?2`, found as SEQ_OF_ID finds one: of the zones that overlap most hold a match. */
export const IDS_BETWEEN = `
  SELECT id FROM deliveries WHERE seq > ${END} AND id >= ?1 AND id < ?2
  UNION ALL
  SELECT id FROM delivery_zones CROSS JOIN deliveries ON seq BETWEEN first_seq AND last_seq
  WHERE last_id >= ?1 AND first_id < ?2 AND +id >= ?1 AND +id < ?2
  LIMIT ?3`;
