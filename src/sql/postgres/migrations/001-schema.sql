-- Times are in milliseconds since 1970 unless a comment says otherwise. Row numbers stay below 2^53, because
-- JSON numbers must. Tables with constant removals are vacuumed after 2 % of their rows are dead instead of
-- 20 %, which in a large table would leave days of space unusable. They are analyzed after 5 % of their rows have
-- changed, though no statement depends on it: each reaches its rows by the same index whatever the statistics say.

-- Users.

-- An identity, so that the id of a deleted user is never used again.
CREATE TABLE users (
  id BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
  name TEXT NOT NULL,
  email TEXT NOT NULL,
  -- When the user was last changed, or one more than before if the clock went back.
  version BIGINT NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint
);

CREATE FUNCTION raise_user_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.version := greatest(OLD.version + 1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
  RETURN NEW;
END $$;
CREATE TRIGGER users_version BEFORE UPDATE ON users FOR EACH ROW EXECUTE FUNCTION raise_user_version();

-- Counts changes of users, in parts so that concurrent writes rarely wait for each other. The sum grows with
-- every commit that changes users, including those of other programs, so it identifies a state of all users.
CREATE TABLE user_changes (
  part INTEGER PRIMARY KEY,
  n BIGINT NOT NULL,
  changed_at BIGINT NOT NULL
) WITH (fillfactor = 50);
INSERT INTO user_changes (part, n, changed_at) SELECT part, 0, 0 FROM generate_series(0, 63) AS part;

-- Changes of users, including those made by other programs. Sequences do not follow the order of commits, so
-- `seq` only orders events that became visible together; the first reader gives them their `position` under
-- the lock of `user_feed`. The newest event is never removed: a reader resumes at the last event that it has
-- seen, and `at` distinguishes that event from another with the same number, such as in an older copy.
CREATE TABLE user_events (
  seq BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991),
  position BIGINT,
  -- created, updated or deleted; start for the first event, which has no user.
  type TEXT NOT NULL,
  -- The version that the user got, or the time of the deletion.
  at BIGINT NOT NULL,
  -- The user after the change, or as it was when it was deleted.
  user_id BIGINT NOT NULL,
  name TEXT NOT NULL,
  email TEXT NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.1);
CREATE UNIQUE INDEX user_events_position ON user_events (position) WHERE position IS NOT NULL;
CREATE INDEX user_events_waiting ON user_events (seq) WHERE position IS NULL;
INSERT INTO user_events (position, type, at, user_id, name, email)
VALUES (1, 'start', (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 0, '', '');

-- One row: the highest position. Its lock is held while positions are assigned or events removed.
CREATE TABLE user_feed (
  last BIGINT NOT NULL
) WITH (fillfactor = 10);
INSERT INTO user_feed (last) VALUES (1);

-- Counts a change and stores its events. The changed rows are already locked, so `seq` orders the events of
-- each user. After TRUNCATE, events start afresh, and readers find that their last event is gone.
CREATE FUNCTION count_user_change() RETURNS trigger LANGUAGE plpgsql AS $$
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
  -- A statement that changes no row is not counted: health checks run one.
  IF NOT FOUND THEN RETURN NULL; END IF;
  UPDATE user_changes SET n = n + 1, changed_at = moment WHERE part = pg_backend_pid() % 64;
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

-- The event up to which changes of users became deliveries: one row, or none if no forward address wants
-- them. Retention keeps the events above it while `moved_at` is recent.
CREATE TABLE user_relay (
  id SMALLINT PRIMARY KEY CHECK (id = 1),
  position BIGINT NOT NULL,
  at BIGINT NOT NULL,
  -- The time of the last move, including one to the same position.
  moved_at BIGINT NOT NULL
) WITH (fillfactor = 10);

-- The results of creates with an Idempotency-Key, stored in the commit that creates the user.
CREATE TABLE idempotency_keys (
  -- The key, or its digest if the key is long.
  key TEXT COLLATE "C" PRIMARY KEY,
  -- A digest of the request's content.
  fingerprint TEXT NOT NULL,
  user_id BIGINT NOT NULL,
  version BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);

CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

-- The progress of imports with a key, moved in the commits that store their users.
CREATE TABLE imports (
  -- The key, or its digest if the key is long.
  key TEXT COLLATE "C" PRIMARY KEY,
  line BIGINT NOT NULL,
  moved_at BIGINT NOT NULL,
  -- A digest of all lines so far: an import that resumes must start with the same content.
  digest TEXT
);

-- Deliveries.

-- Deliveries with their exact bodies; never changed, only removed by retention. `seq` is the order of
-- arrival, `id` the public id.
CREATE TABLE deliveries (
  seq BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  -- The name of the signed source; empty for /webhook itself.
  source TEXT COLLATE "C" NOT NULL,
  event TEXT COLLATE "C",
  -- JSON pointer to the handler's data in the body (RFC 6901).
  data_pointer TEXT NOT NULL,
  content_type TEXT,
  body BYTEA NOT NULL,
  received_at BIGINT NOT NULL,
  -- The sender's id of the delivery, or its digest if the id is long.
  dedup_key TEXT COLLATE "C",
  -- The kept headers of the request as a JSON object, names in lower case; null for most deliveries.
  headers TEXT,
  -- The traceparent of the request, followed by a space and the tracestate if there is one.
  trace TEXT COLLATE "C",
  -- The sender's name of an event that its source renames, as GitHub's push is new_commit; null if `event` is
  -- that name.
  sender_event TEXT COLLATE "C"
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 1000);

-- Rejects a repeated delivery, even if another process stored the first one.
CREATE UNIQUE INDEX deliveries_dedup ON deliveries (source, dedup_key) WHERE dedup_key IS NOT NULL;

-- The bytes of all deliveries, in parts so that concurrent writes do not wait for each other.
CREATE TABLE inbox_size (
  part INTEGER PRIMARY KEY,
  bytes BIGINT NOT NULL
) WITH (fillfactor = 50);

-- The work for a delivery: one job for each target, a handler or a forward address. An open job may be
-- claimed from `due_at` on; a claim moves `due_at` to the end of its lease.
CREATE TABLE jobs (
  seq BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
  delivery BIGINT NOT NULL REFERENCES deliveries (seq),
  target TEXT COLLATE "C" NOT NULL,
  status TEXT NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'done', 'dead', 'discarded')),
  attempts INTEGER NOT NULL DEFAULT 0,
  due_at BIGINT NOT NULL,
  -- The process that holds the lease.
  owner TEXT COLLATE "C",
  -- Jobs of one target with the same key run one after the other.
  order_key TEXT COLLATE "C",
  error TEXT,
  finished_at BIGINT,
  -- How often the process that ran the job crashed, or stalled beyond its lease. Such an
  -- attempt does not count. Jobs with several crashes run one at a time.
  crashes INTEGER NOT NULL DEFAULT 0,
  -- Whether an open job is behind another job with its order key. The head of a key is never blocked: its
  -- leased job or, without one, its first open job. A new job is not blocked until a claim has examined it,
  -- because the statement that stores it cannot see jobs being stored concurrently. So claims examine each
  -- blocked job once.
  blocked BOOLEAN NOT NULL DEFAULT false,
  -- When the lease of an open job began.
  claimed_at BIGINT,
  -- How long the successful attempt took and which process made it, so that a success needs no row in
  -- `attempts`.
  duration BIGINT,
  ended_by TEXT COLLATE "C",
  -- The time before which the job is not due, if its target has a rule for that; a replay clears it.
  run_at BIGINT,
  -- The priority of a job that is due at once makes its `due_at` earlier, so that jobs_due has the order of
  -- claims.
  priority BIGINT NOT NULL DEFAULT 0
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 1000);

CREATE INDEX jobs_delivery ON jobs (delivery);
-- The partial indexes hold only open or dead jobs, so they stay as small as the backlog.
CREATE INDEX jobs_due ON jobs (target, due_at, seq) WHERE status = 'open' AND NOT blocked;
CREATE INDEX jobs_quarantined ON jobs (target, due_at, seq) WHERE status = 'open' AND NOT blocked AND crashes > 0;
CREATE INDEX jobs_order ON jobs (target, order_key, seq) WHERE status = 'open' AND order_key IS NOT NULL;
-- Two claims that do not see each other cannot both lease a job of the same order key.
CREATE UNIQUE INDEX jobs_held ON jobs (target, order_key)
  WHERE status = 'open' AND owner IS NOT NULL AND order_key IS NOT NULL;
CREATE INDEX jobs_dead ON jobs (seq) WHERE status = 'dead';
-- For alerts about dead jobs: those of a target since the last alert.
CREATE INDEX jobs_dead_target ON jobs (target, finished_at) WHERE status = 'dead';
-- For retention, which removes deliveries in the order in which their jobs ended.
CREATE INDEX jobs_ended ON jobs (finished_at, seq) WHERE finished_at IS NOT NULL;

-- Unblocks the first open job of a key when a job of the key is reopened, released or ended, by Portico or
-- manually. A trigger sees rows committed while its statement waited for locks; the statement itself does
-- not.
CREATE FUNCTION jobs_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE jobs SET blocked = false
  WHERE blocked AND seq = (
    SELECT seq FROM jobs WHERE target = NEW.target AND order_key = NEW.order_key AND status = 'open'
    ORDER BY seq LIMIT 1 FOR UPDATE);
  RETURN NULL;
END $$;

CREATE TRIGGER jobs_order AFTER UPDATE OF status, owner ON jobs
FOR EACH ROW
WHEN (NEW.order_key IS NOT NULL AND (OLD.status <> NEW.status OR (OLD.owner IS NOT NULL AND NEW.owner IS NULL)))
EXECUTE FUNCTION jobs_order();

-- Ended attempts: all that failed, were released or crashed, and successes with an answer or before a replay.
CREATE TABLE attempts (
  seq BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
  job BIGINT NOT NULL,
  attempt INTEGER NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('done', 'retry', 'dead', 'released', 'crashed')),
  started_at BIGINT NOT NULL,
  -- Null for a crash, whose end was not recorded.
  duration BIGINT,
  process TEXT COLLATE "C" NOT NULL,
  -- The answer to a forwarded delivery: its status and its first kilobyte.
  status INTEGER,
  answer TEXT,
  error TEXT
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 1000);

CREATE INDEX attempts_job ON attempts (job, seq);

-- A trigger, because it still sees the owner that the statement which counts the crash overwrites.
CREATE FUNCTION record_crash() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO attempts (job, attempt, outcome, started_at, process)
  VALUES (OLD.seq, OLD.attempts, 'crashed', coalesce(OLD.claimed_at, OLD.due_at), coalesce(OLD.owner, ''));
  RETURN NULL;
END $$;

CREATE TRIGGER jobs_crash AFTER UPDATE OF crashes ON jobs
  FOR EACH ROW WHEN (NEW.crashes > OLD.crashes) EXECUTE FUNCTION record_crash();

-- The last heartbeat of each target. A target that no process runs gets its first one when a heartbeat finds
-- open jobs for it. Jobs of targets without a recent heartbeat expire.
CREATE TABLE targets (
  name TEXT COLLATE "C" PRIMARY KEY,
  seen_at BIGINT NOT NULL
);

-- Where each rule of retention continues, in any process: the time and the key of the last entry that it
-- examined. Before that entry, indexes contain removed rows that are not vacuumed yet, which a step must not
-- scan again.
CREATE TABLE retention_cursors (
  rule TEXT COLLATE "C" PRIMARY KEY,
  at BIGINT NOT NULL,
  seq BIGINT NOT NULL
) WITH (fillfactor = 50);
INSERT INTO retention_cursors (rule, at, seq) VALUES ('ended', 0, 0), ('unhandled', 0, 0), ('excess', 0, 0);

-- The dedup keys of handled deliveries that retention removed, so that a late repeat is still recognised. A
-- key is removed by its age, or if there are too many.
CREATE TABLE remembered_keys (
  seq BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
  source TEXT COLLATE "C" NOT NULL,
  dedup_key TEXT COLLATE "C" NOT NULL,
  -- The id of the removed delivery, and when it was received.
  id TEXT COLLATE "C" NOT NULL,
  received_at BIGINT NOT NULL,
  UNIQUE (source, dedup_key)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 1000);

CREATE INDEX remembered_keys_age ON remembered_keys (received_at);

-- Checkpoints of work that exactly one process may do: the planned time of a schedule's last delivery, and
-- the end of the last alert's period. A checkpoint moves in the commit that stores the delivery.
CREATE TABLE checkpoints (
  seq BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
  name TEXT COLLATE "C" NOT NULL UNIQUE,
  at BIGINT NOT NULL
) WITH (fillfactor = 50);

-- Deliveries that a program stored in its own transaction. A service turns them into deliveries with jobs,
-- because only the service knows the handlers.
CREATE TABLE enqueued (
  seq BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL,
  source TEXT COLLATE "C" NOT NULL,
  event TEXT COLLATE "C" NOT NULL,
  body BYTEA NOT NULL,
  received_at BIGINT NOT NULL,
  dedup_key TEXT COLLATE "C"
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 1000);

-- Webhooks to customers.

-- Customers of the program, made with their first endpoint.
CREATE TABLE webhook_tenants (
  seq BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
  name TEXT COLLATE "C" NOT NULL UNIQUE,
  description TEXT NOT NULL DEFAULT '',
  -- Counts the changes of its endpoints. An event is stored together with the jobs of the endpoints of one
  -- version, and only while the tenant has that version.
  version BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL
);

-- The endpoints of customers. `settings` is a JSON object: url, description, types, channels, filter, rate,
-- headers, order, transform.
CREATE TABLE webhook_endpoints (
  seq BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  tenant TEXT COLLATE "C" NOT NULL,
  settings TEXT NOT NULL,
  -- A JSON array of secrets, the current one first; older ones with the end of their use.
  secrets TEXT NOT NULL,
  -- Why the endpoint gets nothing: manual, gone (it answered 410) or failing; null if it is enabled.
  disabled TEXT,
  -- The first failed attempt since the last success; null if the last attempt succeeded.
  failing_since BIGINT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);

CREATE INDEX webhook_endpoints_tenant ON webhook_endpoints (tenant, seq);

-- The types of events that customers may get. `settings` is a JSON object: description, schema, example.
CREATE TABLE webhook_event_types (
  seq BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
  name TEXT COLLATE "C" NOT NULL UNIQUE,
  settings TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);

-- The events of a tenant, and the jobs of an endpoint, newest first.
CREATE INDEX deliveries_tenant ON deliveries (source, seq) WHERE source >= 'tenant:' AND source < 'tenant;';
CREATE INDEX jobs_endpoint ON jobs (target, seq) WHERE target >= 'endpoint:' AND target < 'endpoint;';

-- Access.

-- Tokens for REST and GraphQL. A token has 256 random bits, so its plain digest cannot be reversed; the token
-- itself is shown once. `scopes` are separated by spaces.
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

-- The name of a revoked token may be used again.
CREATE UNIQUE INDEX api_tokens_name ON api_tokens (name) WHERE revoked_at IS NULL;

-- Refused requests (`action` 0) and actions of users (`action` 1), for the auditevents endpoint. `data` is a
-- JSON object.
CREATE TABLE audit_events (
  seq BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
  at BIGINT NOT NULL,
  action BIGINT NOT NULL,
  principal TEXT COLLATE "C" NOT NULL,
  type TEXT COLLATE "C" NOT NULL,
  data TEXT COLLATE "C" NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 1000);

CREATE INDEX audit_events_age ON audit_events (at);
CREATE INDEX audit_events_kind ON audit_events (action, seq);

-- Secrets that all processes on this database share. `cursor` signs the cursors of lists.
CREATE TABLE secrets (
  name TEXT PRIMARY KEY,
  bytes BYTEA NOT NULL
);

-- A random UUID has 122 bits of the server's strong randomness; the hash makes 32 bytes of two.
INSERT INTO secrets (name, bytes)
VALUES ('cursor', sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')));
