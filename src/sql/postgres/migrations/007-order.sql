-- Whether an open job waits behind another one with its order key. The head of a key does not: the job of the key that is
-- leased, or else the first one that is open. A new job does not wait either until a claim has looked at it, because
-- whoever stores it cannot see what others are storing. So claims look at each job that waits once.
ALTER TABLE jobs ADD COLUMN waits BOOLEAN NOT NULL DEFAULT false;

DROP INDEX jobs_due;
DROP INDEX jobs_suspect;
CREATE INDEX jobs_due ON jobs (target, due_at, seq) WHERE status = 'open' AND NOT waits;
CREATE INDEX jobs_suspect ON jobs (target, due_at, seq) WHERE status = 'open' AND NOT waits AND deaths > 0;

-- Whatever opens, ends or gives back a job of a key has the first open one wait no more, whichever version of Portico
-- or client does it. It reads what was committed while it waited for locks, which the statement itself cannot.
CREATE FUNCTION jobs_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE jobs SET waits = false
  WHERE waits AND seq = (
    SELECT seq FROM jobs WHERE target = NEW.target AND order_key = NEW.order_key AND status = 'open'
    ORDER BY seq LIMIT 1 FOR UPDATE);
  RETURN NULL;
END $$;

CREATE TRIGGER jobs_order AFTER UPDATE OF status, owner ON jobs
FOR EACH ROW
WHEN (NEW.order_key IS NOT NULL AND (OLD.status <> NEW.status OR (OLD.owner IS NOT NULL AND NEW.owner IS NULL)))
EXECUTE FUNCTION jobs_order();
