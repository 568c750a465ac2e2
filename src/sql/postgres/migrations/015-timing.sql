-- The time before which a job is not due, where its target has a rule for that; a replay takes it away.
-- A job that is due at once gets an earlier `due_at` by its priority: so jobs_due has the order of the claims.
ALTER TABLE jobs
  ADD COLUMN run_at BIGINT,
  ADD COLUMN priority BIGINT NOT NULL DEFAULT 0;
