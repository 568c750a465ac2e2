-- What was done to users, in the order of the commits, whoever writes. The newest event always stays: a reader is at the
-- event that it has seen last, and `at` tells that one from another of the same number, in an older copy for example.
CREATE TABLE user_events (
  seq INTEGER PRIMARY KEY,
  -- created, updated, deleted; start for the first one, which tells of no user.
  type TEXT NOT NULL,
  -- The version that the user got, or when it was deleted, in milliseconds since 1970.
  at INTEGER NOT NULL,
  -- The user after the change, or as it was deleted.
  user_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  email TEXT NOT NULL
) STRICT;
INSERT INTO user_events (type, at, user_id, name, email)
VALUES ('start', CAST(unixepoch('subsec') * 1000 AS INTEGER), 0, '', '');

-- Ids are in the order of the commits, so a create needs no event of its own as long as the user stays as it was created:
-- whoever reads the events, or changes any user, first stores those of all users behind `last`.
CREATE TABLE user_feed (
  last INTEGER NOT NULL
) STRICT;
INSERT INTO user_feed (last) SELECT coalesce(max(id), 0) FROM users;

-- Up to which event deliveries were made for the addresses that want changes of users: one row, or none where no address
-- does. Events behind it stay as long as it is moved.
CREATE TABLE user_relay (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  position INTEGER NOT NULL,
  at INTEGER NOT NULL,
  -- When it was moved last, be it to where it was, in milliseconds since 1970.
  moved_at INTEGER NOT NULL
) STRICT;

CREATE TRIGGER users_before_update BEFORE UPDATE ON users
WHEN EXISTS (SELECT 1 FROM users WHERE id > (SELECT last FROM user_feed)) BEGIN
  INSERT INTO user_events (type, at, user_id, name, email)
  SELECT
    'created', iif(version > 0, version, CAST(unixepoch('subsec') * 1000 AS INTEGER)), id, name, email
  FROM users WHERE id > (SELECT last FROM user_feed) ORDER BY id;
  UPDATE user_feed SET last = (SELECT max(id) FROM users);
END;
CREATE TRIGGER users_before_delete BEFORE DELETE ON users
WHEN EXISTS (SELECT 1 FROM users WHERE id > (SELECT last FROM user_feed)) BEGIN
  INSERT INTO user_events (type, at, user_id, name, email)
  SELECT
    'created', iif(version > 0, version, CAST(unixepoch('subsec') * 1000 AS INTEGER)), id, name, email
  FROM users WHERE id > (SELECT last FROM user_feed) ORDER BY id;
  UPDATE user_feed SET last = (SELECT max(id) FROM users);
END;
-- A change by hand gets its version by a trigger, an update of its own.
CREATE TRIGGER users_updated_event AFTER UPDATE ON users WHEN new.version <> old.version BEGIN
  INSERT INTO user_events (type, at, user_id, name, email)
  VALUES ('updated', new.version, new.id, new.name, new.email);
END;
CREATE TRIGGER users_deleted_event AFTER DELETE ON users BEGIN
  INSERT INTO user_events (type, at, user_id, name, email)
  VALUES ('deleted', CAST(unixepoch('subsec') * 1000 AS INTEGER), old.id, old.name, old.email);
END;
