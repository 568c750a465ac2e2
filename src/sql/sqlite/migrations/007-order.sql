-- Whether an open job waits behind another one with its order key. The head of a key does not: the job of the key that is
-- leased, or else the first one that is open. So every job that does not wait can be claimed once it is due, and the
-- claims never look at those that wait.
ALTER TABLE jobs ADD COLUMN waits INTEGER NOT NULL DEFAULT 0;

UPDATE jobs SET waits = 1
WHERE status = 'open' AND order_key IS NOT NULL AND EXISTS (
  SELECT 1 FROM jobs AS earlier
  WHERE earlier.target = jobs.target AND earlier.order_key = jobs.order_key AND earlier.status = 'open'
    AND earlier.seq < jobs.seq);

DROP INDEX jobs_due;
DROP INDEX jobs_held;
DROP INDEX jobs_suspect;
CREATE INDEX jobs_due ON jobs (target, due_at, seq) WHERE status = 'open' AND NOT waits;
CREATE INDEX jobs_head ON jobs (target, order_key) WHERE status = 'open' AND NOT waits AND order_key IS NOT NULL;
CREATE INDEX jobs_suspect ON jobs (target, due_at, seq) WHERE status = 'open' AND NOT waits AND deaths > 0;

-- Whatever ends, opens or gives back a job of a key says which one is its head now. A new job finds out when it is
-- stored.
CREATE TRIGGER jobs_end AFTER UPDATE OF status ON jobs
WHEN NEW.order_key IS NOT NULL AND OLD.status = 'open' AND NEW.status <> 'open'
BEGIN
  UPDATE jobs SET waits = 0
  WHERE waits AND seq = coalesce(
    (SELECT seq FROM jobs
      WHERE target = NEW.target AND order_key = NEW.order_key AND status = 'open' AND NOT waits AND owner IS NOT NULL),
    (SELECT seq FROM jobs
      WHERE target = NEW.target AND order_key = NEW.order_key AND status = 'open' ORDER BY seq LIMIT 1));
END;

-- What is open again, or given back, can come before or behind the head that there was.
CREATE TRIGGER jobs_return AFTER UPDATE OF status, owner ON jobs
WHEN NEW.order_key IS NOT NULL AND NEW.status = 'open'
  AND (OLD.status <> 'open' OR (OLD.owner IS NOT NULL AND NEW.owner IS NULL))
BEGIN
  UPDATE jobs SET waits = 0
  WHERE waits AND seq = coalesce(
    (SELECT seq FROM jobs
      WHERE target = NEW.target AND order_key = NEW.order_key AND status = 'open' AND NOT waits AND owner IS NOT NULL),
    (SELECT seq FROM jobs
      WHERE target = NEW.target AND order_key = NEW.order_key AND status = 'open' ORDER BY seq LIMIT 1));
  UPDATE jobs SET waits = 1
  WHERE seq IN (
    SELECT seq FROM jobs AS other
    WHERE target = NEW.target AND order_key = NEW.order_key AND status = 'open' AND NOT waits AND owner IS NULL
      AND EXISTS (
        SELECT 1 FROM jobs AS head
        WHERE head.target = other.target AND head.order_key = other.order_key AND head.status = 'open'
          AND NOT head.waits AND head.seq <> other.seq AND (head.owner IS NOT NULL OR head.seq < other.seq)));
END;
