-- The outcomes of creates that came with an Idempotency-Key, stored with the user that they created.
CREATE TABLE idempotency_keys (
  -- The key, or its digest when it is long.
  key TEXT PRIMARY KEY,
  -- A digest of what was sent with it.
  fingerprint TEXT NOT NULL,
  user_id INTEGER NOT NULL,
  version INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);
