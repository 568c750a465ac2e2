-- Secrets of the database itself, which all of its processes share. `cursor` signs the cursors of lists.
CREATE TABLE secrets (
  name TEXT PRIMARY KEY,
  bytes BLOB NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO secrets (name, bytes) VALUES ('cursor', randomblob(32));
