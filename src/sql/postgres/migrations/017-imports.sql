-- How far imports with a name came, moved in the commits that store their users.
CREATE TABLE imports (
  -- The key, or its digest when it is long.
  key TEXT COLLATE "C" PRIMARY KEY,
  line BIGINT NOT NULL,
  moved_at BIGINT NOT NULL
);
