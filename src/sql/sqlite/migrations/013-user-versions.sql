-- The version of a user: when it was last changed, in milliseconds since 1970, or one more than before where the clock
-- says less. 0 for a user that is older than this column.
ALTER TABLE users ADD COLUMN version INTEGER NOT NULL DEFAULT 0;

-- Counts what has changed or removed users; each create moves the counter of AUTOINCREMENT already.
CREATE TABLE user_changes (
  n INTEGER NOT NULL,
  changed_at INTEGER NOT NULL
) STRICT;
INSERT INTO user_changes (n, changed_at) VALUES (0, 0);

CREATE TRIGGER users_changed AFTER UPDATE ON users BEGIN
  UPDATE user_changes SET n = n + 1, changed_at = CAST(unixepoch('subsec') * 1000 AS INTEGER);
END;
CREATE TRIGGER users_removed AFTER DELETE ON users BEGIN
  UPDATE user_changes SET n = n + 1, changed_at = CAST(unixepoch('subsec') * 1000 AS INTEGER);
END;
-- For whoever changes users by hand.
CREATE TRIGGER users_version AFTER UPDATE OF name, email ON users WHEN new.version = old.version BEGIN
  UPDATE users SET version = max(old.version + 1, CAST(unixepoch('subsec') * 1000 AS INTEGER)) WHERE id = new.id;
END;
