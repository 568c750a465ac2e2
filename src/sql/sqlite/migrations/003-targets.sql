-- The last heartbeat of each target, a handler or a forward address. A target that has open jobs and no heartbeat gets
-- one when it is first found. Jobs of targets without a recent heartbeat expire.
CREATE TABLE targets (
  name TEXT PRIMARY KEY,
  seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
