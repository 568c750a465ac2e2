-- When the lease of an open job began. How long the attempt took that handled a job, and the process that made it, so
-- that a success needs no row of its own.
ALTER TABLE jobs ADD COLUMN claimed_at INTEGER;
ALTER TABLE jobs ADD COLUMN duration INTEGER;
ALTER TABLE jobs ADD COLUMN ended_by TEXT;

-- The attempts that have ended: all that failed, were released or died, and successes with an answer or before a replay.
CREATE TABLE attempts (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  job INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('done', 'retry', 'dead', 'released', 'died')),
  started_at INTEGER NOT NULL,
  -- Null where nobody has seen the end.
  duration INTEGER,
  process TEXT NOT NULL,
  -- What the receiver of a forwarded delivery answered: the status and the first kilobyte.
  status INTEGER,
  answer TEXT,
  error TEXT
) STRICT;

CREATE INDEX attempts_job ON attempts (job);

-- Whichever statement counts a death has lost the owner by the time it is done.
CREATE TRIGGER jobs_death AFTER UPDATE OF deaths ON jobs WHEN new.deaths > old.deaths
BEGIN
  INSERT INTO attempts (job, attempt, outcome, started_at, process)
  VALUES (old.seq, old.attempts, 'died', coalesce(old.claimed_at, old.due_at), coalesce(old.owner, ''));
END;
