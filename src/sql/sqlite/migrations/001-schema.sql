-- Times are in milliseconds since 1970 unless a comment says otherwise.

-- Users.

-- AUTOINCREMENT, so that the id of a deleted user is never used again.
CREATE TABLE users (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  email TEXT NOT NULL,
  -- When the user was last changed, or one more than before if the clock went back. 0 for rows inserted
  -- manually.
  version INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Counts updates and deletes, so that a list can tell whether it is still current. Creates are counted by
-- AUTOINCREMENT.
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
-- Portico sets the version itself; this trigger handles manual changes.
CREATE TRIGGER users_version AFTER UPDATE OF name, email ON users WHEN new.version = old.version BEGIN
  UPDATE users SET version = max(old.version + 1, CAST(unixepoch('subsec') * 1000 AS INTEGER)) WHERE id = new.id;
END;

-- Changes of users in commit order, including those made by other programs. The newest event is never
-- removed: a reader resumes at the last event that it has seen, and `at` distinguishes that event from
-- another with the same number, such as in an older copy.
CREATE TABLE user_events (
  seq INTEGER PRIMARY KEY,
  -- created, updated or deleted; start for the first event, which has no user.
  type TEXT NOT NULL,
  -- The version that the user got, or the time of the deletion.
  at INTEGER NOT NULL,
  -- The user after the change, or as it was when it was deleted.
  user_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  email TEXT NOT NULL
) STRICT;
INSERT INTO user_events (type, at, user_id, name, email)
VALUES ('start', CAST(unixepoch('subsec') * 1000 AS INTEGER), 0, '', '');

-- The id of the last user whose creation is an event. Ids follow the order of commits, so creates store no
-- event, which keeps them cheap: readers, and the first change of any user, add the events of all users above
-- `last`.
CREATE TABLE user_feed (
  last INTEGER NOT NULL
) STRICT;
INSERT INTO user_feed (last) VALUES (0);

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
-- Only for a new version: a manual change gets its version in a second update, which adds the event.
CREATE TRIGGER users_updated_event AFTER UPDATE ON users WHEN new.version <> old.version BEGIN
  INSERT INTO user_events (type, at, user_id, name, email)
  VALUES ('updated', new.version, new.id, new.name, new.email);
END;
CREATE TRIGGER users_deleted_event AFTER DELETE ON users BEGIN
  INSERT INTO user_events (type, at, user_id, name, email)
  VALUES ('deleted', CAST(unixepoch('subsec') * 1000 AS INTEGER), old.id, old.name, old.email);
END;

-- The event up to which changes of users became deliveries: one row, or none if no forward address wants
-- them. Retention keeps the events above it while `moved_at` is recent.
CREATE TABLE user_relay (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  position INTEGER NOT NULL,
  at INTEGER NOT NULL,
  -- The time of the last move, including one to the same position.
  moved_at INTEGER NOT NULL
) STRICT;

-- The results of creates with an Idempotency-Key, stored in the commit that creates the user.
CREATE TABLE idempotency_keys (
  -- The key, or its digest if the key is long.
  key TEXT PRIMARY KEY,
  -- A digest of the request's content.
  fingerprint TEXT NOT NULL,
  user_id INTEGER NOT NULL,
  version INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

-- The progress of imports with a key, moved in the commits that store their users.
CREATE TABLE imports (
  -- The key, or its digest if the key is long.
  key TEXT PRIMARY KEY,
  line INTEGER NOT NULL,
  moved_at INTEGER NOT NULL,
  -- A digest of all lines so far: an import that resumes must start with the same content.
  digest TEXT
) STRICT, WITHOUT ROWID;

-- Deliveries.

-- Deliveries with their exact bodies; never changed, only removed by retention. `seq` is the order of
-- arrival, `id` the public id. There is no index on `id`: see delivery_zones.
CREATE TABLE deliveries (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  -- The name of the signed source; empty for /webhook itself.
  source TEXT NOT NULL,
  event TEXT,
  -- JSON pointer to the handler's data in the body (RFC 6901).
  data_pointer TEXT NOT NULL,
  content_type TEXT,
  body BLOB NOT NULL,
  received_at INTEGER NOT NULL,
  -- The sender's id of the delivery, or its digest if the id is long.
  dedup_key TEXT,
  -- The kept headers of the request as a JSON object, names in lower case; null for most deliveries.
  headers TEXT,
  -- The traceparent of the request, followed by a space and the tracestate if there is one.
  trace TEXT,
  -- The sender's name of an event that its source renames, as GitHub's push is new_commit; null if `event` is
  -- that name.
  sender_event TEXT
) STRICT;

-- Rejects a repeated delivery, even if another process stored the first one.
CREATE UNIQUE INDEX deliveries_dedup ON deliveries (source, dedup_key) WHERE dedup_key IS NOT NULL;

-- Portico stores the highest `seq` here when it removes deliveries, so that no `seq` is reused. AUTOINCREMENT
-- would write this row in every commit.
INSERT INTO sqlite_sequence (name, seq) VALUES ('deliveries', 0);

-- Ranges of consecutive deliveries with their lowest and highest `id`, to find a delivery by its id. An index
-- would need an entry for each delivery, a third of the cost of storing one, and lookups by id are rare.
-- Deliveries above the last zone are in no zone yet.
CREATE TABLE delivery_zones (
  last_seq INTEGER PRIMARY KEY,
  first_seq INTEGER NOT NULL,
  first_id TEXT NOT NULL,
  last_id TEXT NOT NULL
) STRICT;

-- The bytes of the deliveries in zones, in one row.
CREATE TABLE inbox_size (
  part INTEGER PRIMARY KEY,
  bytes INTEGER NOT NULL
) STRICT;
INSERT INTO inbox_size (part, bytes) VALUES (0, 0);

-- The work for a delivery: one job for each target, a handler or a forward address. An open job may be
-- claimed from `due_at` on; a claim moves `due_at` to the end of its lease.
CREATE TABLE jobs (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  delivery INTEGER NOT NULL REFERENCES deliveries (seq),
  target TEXT NOT NULL,
  -- Compared one by one: for a longer IN, SQLite builds a table in each statement.
  status TEXT NOT NULL DEFAULT 'open'
    CHECK (status = 'open' OR status = 'done' OR status = 'dead' OR status = 'discarded'),
  attempts INTEGER NOT NULL DEFAULT 0,
  due_at INTEGER NOT NULL,
  -- The process that holds the lease.
  owner TEXT,
  -- Jobs of one target with the same key run one after the other.
  order_key TEXT,
  error TEXT,
  finished_at INTEGER,
  -- How often the process that ran the job crashed, or stalled beyond its lease. Such an
  -- attempt does not count. Jobs with several crashes run one at a time.
  crashes INTEGER NOT NULL DEFAULT 0,
  -- Whether an open job is behind another job with its order key. The head of a key is never blocked: its
  -- leased job or, without one, its first open job. So every unblocked job can be claimed once it is due, and
  -- claims never examine blocked jobs.
  blocked INTEGER NOT NULL DEFAULT 0,
  -- When the lease of an open job began.
  claimed_at INTEGER,
  -- How long the successful attempt took and which process made it, so that a success needs no row in
  -- `attempts`.
  duration INTEGER,
  ended_by TEXT,
  -- The time before which the job is not due, if its target has a rule for that; a replay clears it. It is in
  -- the system's time, whereas `due_at` follows the clock of the process.
  run_at INTEGER,
  -- The priority of a job that is due at once makes its `due_at` earlier, so that jobs_due has the order of
  -- claims.
  priority INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX jobs_delivery ON jobs (delivery);
-- The partial indexes hold only open or dead jobs, so they stay as small as the backlog.
CREATE INDEX jobs_due ON jobs (target, due_at, seq) WHERE status = 'open' AND NOT blocked;
CREATE INDEX jobs_quarantined ON jobs (target, due_at, seq) WHERE status = 'open' AND NOT blocked AND crashes > 0;
CREATE INDEX jobs_head ON jobs (target, order_key) WHERE status = 'open' AND NOT blocked AND order_key IS NOT NULL;
CREATE INDEX jobs_order ON jobs (target, order_key, seq) WHERE status = 'open' AND order_key IS NOT NULL;
CREATE INDEX jobs_dead ON jobs (seq) WHERE status = 'dead';
-- For alerts about dead jobs: those of a target since the last alert.
CREATE INDEX jobs_dead_target ON jobs (target, finished_at) WHERE status = 'dead';
-- For retention, which removes deliveries in the order in which their jobs ended.
CREATE INDEX jobs_ended ON jobs (finished_at) WHERE finished_at IS NOT NULL;

-- Triggers determine the head of an order key, because jobs may be ended or reopened manually. For a new job,
-- the INSERT determines whether it is blocked.
CREATE TRIGGER jobs_end AFTER UPDATE OF status ON jobs
WHEN NEW.order_key IS NOT NULL AND OLD.status = 'open' AND NEW.status <> 'open'
BEGIN
  UPDATE jobs SET blocked = 0
  WHERE blocked AND seq = coalesce(
    (SELECT seq FROM jobs
      WHERE target = NEW.target AND order_key = NEW.order_key AND status = 'open' AND NOT blocked AND owner IS NOT NULL),
    (SELECT seq FROM jobs
      WHERE target = NEW.target AND order_key = NEW.order_key AND status = 'open' ORDER BY seq LIMIT 1));
END;

-- A reopened or released job may belong before or after the current head.
CREATE TRIGGER jobs_return AFTER UPDATE OF status, owner ON jobs
WHEN NEW.order_key IS NOT NULL AND NEW.status = 'open'
  AND (OLD.status <> 'open' OR (OLD.owner IS NOT NULL AND NEW.owner IS NULL))
BEGIN
  UPDATE jobs SET blocked = 0
  WHERE blocked AND seq = coalesce(
    (SELECT seq FROM jobs
      WHERE target = NEW.target AND order_key = NEW.order_key AND status = 'open' AND NOT blocked AND owner IS NOT NULL),
    (SELECT seq FROM jobs
      WHERE target = NEW.target AND order_key = NEW.order_key AND status = 'open' ORDER BY seq LIMIT 1));
  UPDATE jobs SET blocked = 1
  WHERE seq IN (
    SELECT seq FROM jobs AS other
    WHERE target = NEW.target AND order_key = NEW.order_key AND status = 'open' AND NOT blocked AND owner IS NULL
      AND EXISTS (
        SELECT 1 FROM jobs AS head
        WHERE head.target = other.target AND head.order_key = other.order_key AND head.status = 'open'
          AND NOT head.blocked AND head.seq <> other.seq AND (head.owner IS NOT NULL OR head.seq < other.seq)));
END;

-- Ended attempts: all that failed, were released or crashed, and successes with an answer or before a replay.
CREATE TABLE attempts (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  job INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  outcome TEXT NOT NULL
    CHECK (outcome = 'done' OR outcome = 'retry' OR outcome = 'dead' OR outcome = 'released' OR outcome = 'crashed'),
  started_at INTEGER NOT NULL,
  -- Null for a crash, whose end was not recorded.
  duration INTEGER,
  process TEXT NOT NULL,
  -- The answer to a forwarded delivery: its status and its first kilobyte.
  status INTEGER,
  answer TEXT,
  error TEXT
) STRICT;

CREATE INDEX attempts_job ON attempts (job);

-- A trigger, because it still sees the owner that the statement which counts the crash overwrites.
CREATE TRIGGER jobs_crash AFTER UPDATE OF crashes ON jobs WHEN new.crashes > old.crashes
BEGIN
  INSERT INTO attempts (job, attempt, outcome, started_at, process)
  VALUES (old.seq, old.attempts, 'crashed', coalesce(old.claimed_at, old.due_at), coalesce(old.owner, ''));
END;

-- The last heartbeat of each target. A target that no process runs gets its first one when a heartbeat finds
-- open jobs for it. Jobs of targets without a recent heartbeat expire.
CREATE TABLE targets (
  name TEXT PRIMARY KEY,
  seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Where each rule of retention continues: the time and the key of the last entry that it examined.
CREATE TABLE retention_cursors (
  rule TEXT PRIMARY KEY,
  at INTEGER NOT NULL,
  seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO retention_cursors (rule, at, seq) VALUES ('ended', 0, 0), ('unhandled', 0, 0), ('excess', 0, 0);

-- The dedup keys of handled deliveries that retention removed, so that a late repeat is still recognised. A
-- key is removed by its age, or if there are too many.
CREATE TABLE remembered_keys (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  source TEXT NOT NULL,
  dedup_key TEXT NOT NULL,
  -- The id of the removed delivery, and when it was received.
  id TEXT NOT NULL,
  received_at INTEGER NOT NULL,
  UNIQUE (source, dedup_key)
) STRICT;

CREATE INDEX remembered_keys_age ON remembered_keys (received_at);

-- Checkpoints of work that exactly one process may do: the planned time of a schedule's last delivery, and
-- the end of the last alert's period. A checkpoint moves in the commit that stores the delivery.
CREATE TABLE checkpoints (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  at INTEGER NOT NULL
) STRICT;

-- Deliveries that a program stored in its own transaction. A service turns them into deliveries with jobs,
-- because only the service knows the handlers.
CREATE TABLE enqueued (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  source TEXT NOT NULL,
  event TEXT NOT NULL,
  body BLOB NOT NULL,
  received_at INTEGER NOT NULL,
  dedup_key TEXT
) STRICT;

-- Webhooks to customers.

-- Customers of the program, made with their first endpoint.
CREATE TABLE webhook_tenants (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  description TEXT NOT NULL DEFAULT '',
  -- Counts the changes of its endpoints. An event is stored together with the jobs of the endpoints of one
  -- version, and only while the tenant has that version.
  version INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL
) STRICT;

-- The endpoints of customers. `settings` is a JSON object: url, description, types, channels, filter, rate,
-- headers, order, transform.
CREATE TABLE webhook_endpoints (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  tenant TEXT NOT NULL,
  settings TEXT NOT NULL,
  -- A JSON array of secrets, the current one first; older ones with the end of their use.
  secrets TEXT NOT NULL,
  -- Why the endpoint gets nothing: manual, gone (it answered 410) or failing; null if it is enabled.
  disabled TEXT,
  -- The first failed attempt since the last success; null if the last attempt succeeded.
  failing_since INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;

CREATE INDEX webhook_endpoints_tenant ON webhook_endpoints (tenant, seq);

-- The types of events that customers may get. `settings` is a JSON object: description, schema, example.
CREATE TABLE webhook_event_types (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  settings TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;

-- The events of a tenant, and the jobs of an endpoint, newest first.
CREATE INDEX deliveries_tenant ON deliveries (source, seq) WHERE source >= 'tenant:' AND source < 'tenant;';
CREATE INDEX jobs_endpoint ON jobs (target, seq) WHERE target >= 'endpoint:' AND target < 'endpoint;';

-- Access.

-- Tokens for REST and GraphQL. A token has 256 random bits, so its plain digest cannot be reversed; the token
-- itself is shown once. `scopes` are separated by spaces.
CREATE TABLE api_tokens (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  digest TEXT NOT NULL UNIQUE,
  scopes TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  used_at INTEGER
) STRICT;

-- The name of a revoked token may be used again.
CREATE UNIQUE INDEX api_tokens_name ON api_tokens (name) WHERE revoked_at IS NULL;

-- Refused requests (`action` 0) and actions of users (`action` 1), for the auditevents endpoint. `data` is a
-- JSON object.
CREATE TABLE audit_events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  action INTEGER NOT NULL,
  principal TEXT NOT NULL,
  type TEXT NOT NULL,
  data TEXT NOT NULL
) STRICT;

CREATE INDEX audit_events_age ON audit_events (at);
CREATE INDEX audit_events_kind ON audit_events (action, seq);

-- Secrets that all processes on this database share. `cursor` signs the cursors of lists.
CREATE TABLE secrets (
  name TEXT PRIMARY KEY,
  bytes BLOB NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO secrets (name, bytes) VALUES ('cursor', randomblob(32));
