-- When the lease of an open job began. How long the attempt took that handled a job, and the process that made it, so
-- that a success needs no row of its own.
ALTER TABLE jobs
  ADD COLUMN claimed_at BIGINT,
  ADD COLUMN duration BIGINT,
  ADD COLUMN ended_by TEXT COLLATE "C";

-- The attempts that have ended: all that failed, were released or died, and successes with an answer or before a replay.
CREATE TABLE attempts (
  seq BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
  job BIGINT NOT NULL,
  attempt INTEGER NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('done', 'retry', 'dead', 'released', 'died')),
  started_at BIGINT NOT NULL,
  -- Null where nobody has seen the end.
  duration BIGINT,
  process TEXT COLLATE "C" NOT NULL,
  -- What the receiver of a forwarded delivery answered: the status and the first kilobyte.
  status INTEGER,
  answer TEXT,
  error TEXT
);

CREATE INDEX attempts_job ON attempts (job, seq);

-- Whichever statement counts a death has lost the owner by the time it is done.
CREATE FUNCTION record_death() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO attempts (job, attempt, outcome, started_at, process)
  VALUES (OLD.seq, OLD.attempts, 'died', coalesce(OLD.claimed_at, OLD.due_at), coalesce(OLD.owner, ''));
  RETURN NULL;
END $$;

CREATE TRIGGER jobs_death AFTER UPDATE OF deaths ON jobs
  FOR EACH ROW WHEN (NEW.deaths > OLD.deaths) EXECUTE FUNCTION record_death();
