-- Ended jobs in the order in which they ended, for the removal of old deliveries.
CREATE INDEX jobs_ended ON jobs (finished_at) WHERE finished_at IS NOT NULL;

-- How far each rule of the removal has come: the time and the key of the last entry that it looked at.
CREATE TABLE retention_cursors (
  rule TEXT PRIMARY KEY,
  at INTEGER NOT NULL,
  seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO retention_cursors (rule, at, seq) VALUES ('ended', 0, 0), ('unhandled', 0, 0), ('excess', 0, 0);

-- The bytes of the deliveries in zones, in one row.
CREATE TABLE inbox_size (
  part INTEGER PRIMARY KEY,
  bytes INTEGER NOT NULL
) STRICT;

INSERT INTO inbox_size (part, bytes)
SELECT 0, coalesce(sum(octet_length(body) + 500), 0) FROM deliveries
WHERE seq <= (SELECT max(last_seq) FROM delivery_zones);
