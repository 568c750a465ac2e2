-- How far something has come that happens once for all processes: the planned time of a schedule's last delivery, and
-- the end of what the last alert was about. A mark moves in the commit that stores the delivery.
CREATE TABLE marks (
  seq BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
  name TEXT COLLATE "C" NOT NULL UNIQUE,
  at BIGINT NOT NULL
) WITH (fillfactor = 50);

-- Dead jobs by target, in the order in which they died, for the alerts about them.
CREATE INDEX jobs_dead_target ON jobs (target, finished_at) WHERE status = 'dead';

-- Deliveries that a program has stored in a transaction of its own. A service makes them deliveries with jobs: only it
-- knows the handlers.
CREATE TABLE enqueued (
  seq BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL,
  source TEXT COLLATE "C" NOT NULL,
  event TEXT COLLATE "C" NOT NULL,
  body BYTEA NOT NULL,
  received_at BIGINT NOT NULL,
  dedup_key TEXT COLLATE "C"
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
