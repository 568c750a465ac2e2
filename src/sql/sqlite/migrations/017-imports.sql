-- How far imports with a name came, moved in the commits that store their users.
CREATE TABLE imports (
  -- The key, or its digest when it is long.
  key TEXT PRIMARY KEY,
  line INTEGER NOT NULL,
  moved_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
