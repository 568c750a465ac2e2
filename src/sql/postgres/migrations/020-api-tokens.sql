-- Tokens for REST and GraphQL. A token is 256 random bits, so its digest is as good as unreadable; the token itself is
-- shown once. `scopes` are separated by spaces.
CREATE TABLE api_tokens (
  seq BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
  name TEXT COLLATE "C" NOT NULL,
  digest TEXT COLLATE "C" NOT NULL UNIQUE,
  scopes TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  revoked_at BIGINT,
  used_at BIGINT
);

-- The name of a revoked token may be given again.
CREATE UNIQUE INDEX api_tokens_name ON api_tokens (name) WHERE revoked_at IS NULL;
