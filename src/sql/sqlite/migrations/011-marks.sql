-- How far something has come that happens once for all processes: the planned time of a schedule's last delivery, and
-- the end of what the last alert was about. A mark moves in the commit that stores the delivery.
CREATE TABLE marks (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  at INTEGER NOT NULL
) STRICT;

-- Dead jobs by target, in the order in which they died, for the alerts about them.
CREATE INDEX jobs_dead_target ON jobs (target, finished_at) WHERE status = 'dead';

-- Deliveries that a program has stored in a transaction of its own. A service makes them deliveries with jobs: only it
-- knows the handlers.
CREATE TABLE enqueued (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  source TEXT NOT NULL,
  event TEXT NOT NULL,
  body BLOB NOT NULL,
  received_at INTEGER NOT NULL,
  dedup_key TEXT
) STRICT;
