-- Ended jobs in the order in which they ended, for the removal of old deliveries.
CREATE INDEX jobs_ended ON jobs (finished_at, seq) WHERE finished_at IS NOT NULL;

-- How far each rule of the removal has come, in whichever process: the time and the key of the last entry that it looked
-- at. Beyond it an index has no entries of removed rows that a vacuum has yet to clear.
CREATE TABLE retention_cursors (
  rule TEXT COLLATE "C" PRIMARY KEY,
  at BIGINT NOT NULL,
  seq BIGINT NOT NULL
) WITH (fillfactor = 50);

INSERT INTO retention_cursors (rule, at, seq) VALUES ('ended', 0, 0), ('unhandled', 0, 0), ('excess', 0, 0);
