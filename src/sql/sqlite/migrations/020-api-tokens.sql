-- Tokens for REST and GraphQL. A token is 256 random bits, so its digest is as good as unreadable; the token itself is
-- shown once. `scopes` are separated by spaces.
CREATE TABLE api_tokens (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  digest TEXT NOT NULL UNIQUE,
  scopes TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  used_at INTEGER
) STRICT;

-- The name of a revoked token may be given again.
CREATE UNIQUE INDEX api_tokens_name ON api_tokens (name) WHERE revoked_at IS NULL;
