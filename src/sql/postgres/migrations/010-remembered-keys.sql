-- The dedup keys of removed deliveries that were handled: a sender that repeats one is still told that it was received.
-- A key is removed by its age, or when there are too many.
CREATE TABLE remembered_keys (
  seq BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
  source TEXT COLLATE "C" NOT NULL,
  dedup_key TEXT COLLATE "C" NOT NULL,
  -- The id of the removed delivery, and when it was received.
  id TEXT COLLATE "C" NOT NULL,
  received_at BIGINT NOT NULL,
  UNIQUE (source, dedup_key)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE INDEX remembered_keys_age ON remembered_keys (received_at);
