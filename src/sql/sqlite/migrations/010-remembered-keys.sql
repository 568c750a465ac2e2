-- The dedup keys of removed deliveries that were handled: a sender that repeats one is still told that it was received.
-- A key is removed by its age, or when there are too many.
CREATE TABLE remembered_keys (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  source TEXT NOT NULL,
  dedup_key TEXT NOT NULL,
  -- The id of the removed delivery, and when it was received.
  id TEXT NOT NULL,
  received_at INTEGER NOT NULL,
  UNIQUE (source, dedup_key)
) STRICT;

CREATE INDEX remembered_keys_age ON remembered_keys (received_at);
