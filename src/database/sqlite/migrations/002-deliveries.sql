-- `seq` keeps the order of arrival; `id` is what the outside knows a delivery by.
CREATE TABLE deliveries (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  event TEXT,
  body BLOB NOT NULL,
  received_at INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'done', 'failed', 'unhandled'))
) STRICT;

-- Claims look only at what waits, so the index stays as small as the backlog.
CREATE INDEX deliveries_pending ON deliveries (seq) WHERE status = 'pending';
