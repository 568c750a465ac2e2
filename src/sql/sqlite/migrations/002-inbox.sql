-- Deliveries, with their bodies byte for byte; never changed, only removed when they are old.
-- `seq` keeps the order of arrival; `id` is the public id of a delivery (see delivery_zones).
CREATE TABLE deliveries (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  -- The name of the signed source; empty for /webhook itself.
  source TEXT NOT NULL,
  event TEXT,
  -- Where in the body the handler's data are (RFC 6901).
  data_pointer TEXT NOT NULL,
  content_type TEXT,
  body BLOB NOT NULL,
  received_at INTEGER NOT NULL,
  -- The sender's own id of the delivery.
  dedup_key TEXT
) STRICT;

CREATE UNIQUE INDEX deliveries_dedup ON deliveries (source, dedup_key) WHERE dedup_key IS NOT NULL;

-- The work for a delivery: one job per target (a handler or a forward address).
-- An open job may be claimed from `due_at` on; a claim moves `due_at` to the end of its lease.
CREATE TABLE jobs (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  delivery INTEGER NOT NULL REFERENCES deliveries (seq),
  target TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'done', 'dead', 'discarded')),
  attempts INTEGER NOT NULL DEFAULT 0,
  due_at INTEGER NOT NULL,
  -- The process that holds the lease.
  owner TEXT,
  -- Jobs of one target with the same key run one after the other.
  order_key TEXT,
  error TEXT,
  finished_at INTEGER
) STRICT;

CREATE INDEX jobs_delivery ON jobs (delivery);
-- The indexes below contain only open, leased and dead jobs, so they stay as small as the backlog.
CREATE INDEX jobs_due ON jobs (target, due_at, seq) WHERE status = 'open';
CREATE INDEX jobs_order ON jobs (target, order_key, seq) WHERE status = 'open' AND order_key IS NOT NULL;
CREATE INDEX jobs_held ON jobs (owner) WHERE owner IS NOT NULL;
CREATE INDEX jobs_dead ON jobs (seq) WHERE status = 'dead';
