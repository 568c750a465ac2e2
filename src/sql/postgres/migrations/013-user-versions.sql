-- The version of a user: when it was last changed, in milliseconds since 1970, or one more than before where the clock
-- says less. 0 for a user that is older than this column.
ALTER TABLE users ADD COLUMN version BIGINT NOT NULL DEFAULT 0;
ALTER TABLE users ALTER COLUMN version SET DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;

CREATE FUNCTION raise_user_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.version := greatest(OLD.version + 1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
  RETURN NEW;
END $$;
CREATE TRIGGER users_version BEFORE UPDATE ON users FOR EACH ROW EXECUTE FUNCTION raise_user_version();

-- Counts what has changed the users, in parts, so that writes at the same time seldom wait for each other. The sum grows
-- with every commit that changes users, whoever writes, so it names one state of them.
CREATE TABLE user_changes (
  part INTEGER PRIMARY KEY,
  n BIGINT NOT NULL,
  changed_at BIGINT NOT NULL
) WITH (fillfactor = 50);
INSERT INTO user_changes (part, n, changed_at) SELECT part, 0, 0 FROM generate_series(0, 63) AS part;

-- A statement that changes no row counts for nothing: health checks run one.
CREATE FUNCTION count_user_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'TRUNCATE' THEN
    IF NOT EXISTS (SELECT FROM changed) THEN RETURN NULL; END IF;
  END IF;
  UPDATE user_changes SET n = n + 1, changed_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint
  WHERE part = pg_backend_pid() % 64;
  RETURN NULL;
END $$;
CREATE TRIGGER users_inserted AFTER INSERT ON users REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION count_user_change();
CREATE TRIGGER users_updated AFTER UPDATE ON users REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION count_user_change();
CREATE TRIGGER users_removed AFTER DELETE ON users REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION count_user_change();
CREATE TRIGGER users_truncated AFTER TRUNCATE ON users
  FOR EACH STATEMENT EXECUTE FUNCTION count_user_change();
