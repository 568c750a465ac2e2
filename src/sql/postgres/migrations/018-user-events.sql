-- What was done to users, whoever writes. Sequences do not count in the order of the commits, so `seq` only orders what
-- has become visible together; whoever reads the events first gives them their `position`, under the lock of `user_feed`.
-- The newest event always stays: a reader is at the event that it has seen last, and `at` tells that one from another of
-- the same number, in an older copy for example.
CREATE TABLE user_events (
  seq BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991),
  position BIGINT,
  -- created, updated, deleted; start for the first one, which tells of no user.
  type TEXT NOT NULL,
  -- The version that the user got, or when it was deleted, in milliseconds since 1970.
  at BIGINT NOT NULL,
  -- The user after the change, or as it was deleted.
  user_id BIGINT NOT NULL,
  name TEXT NOT NULL,
  email TEXT NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.1);
CREATE UNIQUE INDEX user_events_position ON user_events (position) WHERE position IS NOT NULL;
CREATE INDEX user_events_waiting ON user_events (seq) WHERE position IS NULL;

-- One row: the highest position that was given. Its lock is that of all who give positions or remove events.
CREATE TABLE user_feed (
  last BIGINT NOT NULL
) WITH (fillfactor = 10);
INSERT INTO user_feed (last) VALUES (1);
INSERT INTO user_events (position, type, at, user_id, name, email)
VALUES (1, 'start', (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 0, '', '');

-- Up to which event deliveries were made for the addresses that want changes of users: one row, or none where no address
-- does. Events behind it stay as long as it is moved.
CREATE TABLE user_relay (
  id SMALLINT PRIMARY KEY CHECK (id = 1),
  position BIGINT NOT NULL,
  at BIGINT NOT NULL,
  -- When it was moved last, be it to where it was, in milliseconds since 1970.
  moved_at BIGINT NOT NULL
) WITH (fillfactor = 10);

-- Counts a change of users as before, and stores what was done. The rows are locked by then, so the events of one user
-- have their order from `seq`. A truncation begins anew: readers find their event gone.
CREATE OR REPLACE FUNCTION count_user_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  moment BIGINT := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    DELETE FROM user_events;
    INSERT INTO user_events (type, at, user_id, name, email) VALUES ('start', moment, 0, '', '');
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO user_events (type, at, user_id, name, email)
    SELECT 'deleted', moment, id, name, email FROM changed ORDER BY id;
  ELSE
    INSERT INTO user_events (type, at, user_id, name, email)
    SELECT CASE TG_OP WHEN 'INSERT' THEN 'created' ELSE 'updated' END, version, id, name, email
    FROM changed ORDER BY id;
  END IF;
  -- A statement that changes no row counts for nothing: health checks run one.
  IF NOT FOUND THEN RETURN NULL; END IF;
  UPDATE user_changes SET n = n + 1, changed_at = moment WHERE part = pg_backend_pid() % 64;
  RETURN NULL;
END $$;
