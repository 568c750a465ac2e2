-- Secrets of the database itself, which all of its processes share. `cursor` signs the cursors of lists.
CREATE TABLE secrets (
  name TEXT PRIMARY KEY,
  bytes BYTEA NOT NULL
);

-- A random UUID has 122 bits of the server's strong randomness.
INSERT INTO secrets (name, bytes)
VALUES ('cursor', sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')));
