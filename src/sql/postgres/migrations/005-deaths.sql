-- How often the process that was running the job has ended, or stood still for longer than its lease. Such an end is no
-- attempt. Jobs with several deaths are suspects, which run one at a time.
ALTER TABLE jobs ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0;

CREATE INDEX jobs_suspect ON jobs (target, due_at, seq) WHERE status = 'open' AND deaths > 0;
