-- Deliveries, with their bodies byte for byte; never changed, only removed when they are old.
-- `seq` keeps the order of arrival; `id` is the public id of a delivery.
CREATE TABLE deliveries (
  seq BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  -- The name of the signed source; empty for /webhook itself.
  source TEXT COLLATE "C" NOT NULL,
  event TEXT COLLATE "C",
  -- Where in the body the handler's data are (RFC 6901).
  data_pointer TEXT NOT NULL,
  content_type TEXT,
  body BYTEA NOT NULL,
  received_at BIGINT NOT NULL,
  -- The sender's own id of the delivery, or its digest when that is long.
  dedup_key TEXT COLLATE "C"
);

CREATE UNIQUE INDEX deliveries_dedup ON deliveries (source, dedup_key) WHERE dedup_key IS NOT NULL;

-- The work for a delivery: one job per target (a handler or a forward address).
-- An open job may be claimed from `due_at` on; a claim moves `due_at` to the end of its lease.
CREATE TABLE jobs (
  seq BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
  delivery BIGINT NOT NULL REFERENCES deliveries (seq),
  target TEXT COLLATE "C" NOT NULL,
  status TEXT NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'done', 'dead', 'discarded')),
  attempts INTEGER NOT NULL DEFAULT 0,
  due_at BIGINT NOT NULL,
  -- The process that holds the lease.
  owner TEXT COLLATE "C",
  -- Jobs of one target with the same key run one after the other.
  order_key TEXT COLLATE "C",
  error TEXT,
  finished_at BIGINT
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE INDEX jobs_delivery ON jobs (delivery);
-- The indexes below contain only open, leased and dead jobs, so they stay as small as the backlog.
CREATE INDEX jobs_due ON jobs (target, due_at, seq) WHERE status = 'open';
CREATE INDEX jobs_order ON jobs (target, order_key, seq) WHERE status = 'open' AND order_key IS NOT NULL;
CREATE INDEX jobs_dead ON jobs (seq) WHERE status = 'dead';
-- Claims that do not see each other cannot both hold a job of the same order.
CREATE UNIQUE INDEX jobs_held ON jobs (target, order_key)
  WHERE status = 'open' AND owner IS NOT NULL AND order_key IS NOT NULL;

-- The bytes of all deliveries, in parts, so that writes at the same time do not wait for each other.
CREATE TABLE inbox_size (
  part INTEGER PRIMARY KEY,
  bytes BIGINT NOT NULL
) WITH (fillfactor = 50);
