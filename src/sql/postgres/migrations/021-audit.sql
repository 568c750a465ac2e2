-- What was refused and who did what, for the auditevents endpoint. `action` is 1 for what somebody did, 0 for a refusal;
-- `data` is a JSON object.
CREATE TABLE audit_events (
  seq BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
  at BIGINT NOT NULL,
  action BIGINT NOT NULL,
  principal TEXT COLLATE "C" NOT NULL,
  type TEXT COLLATE "C" NOT NULL,
  data TEXT COLLATE "C" NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE INDEX audit_events_age ON audit_events (at);
CREATE INDEX audit_events_kind ON audit_events (action, seq);
