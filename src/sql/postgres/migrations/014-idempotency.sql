-- The outcomes of creates that came with an Idempotency-Key, stored with the user that they created.
CREATE TABLE idempotency_keys (
  -- The key, or its digest when it is long.
  key TEXT COLLATE "C" PRIMARY KEY,
  -- A digest of what was sent with it.
  fingerprint TEXT NOT NULL,
  user_id BIGINT NOT NULL,
  version BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);

CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);
