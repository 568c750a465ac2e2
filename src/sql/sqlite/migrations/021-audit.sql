-- What was refused and who did what, for the auditevents endpoint. `action` is 1 for what somebody did, 0 for a refusal;
-- `data` is a JSON object.
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
