/** Maximum number of deliveries that are taken in at a time. */
const ROWS = 100;
/** Maximum size of their bodies, in bytes, unless the first one is larger. */
const BYTES = 4 * 1024 * 1024;

/** The oldest enqueued deliveries. */
export const OLDEST_ENQUEUED = `
  SELECT seq, id, source, event, body, received_at AS "receivedAt", dedup_key AS "dedupKey" FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) - octet_length(body) AS bytes_before
    FROM (SELECT * FROM enqueued ORDER BY seq LIMIT ${ROWS}) AS oldest) AS sized
  WHERE bytes_before < ${BYTES} ORDER BY seq`;
