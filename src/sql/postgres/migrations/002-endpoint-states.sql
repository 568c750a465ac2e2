-- When an endpoint was disabled; null while it is enabled.
ALTER TABLE webhook_endpoints ADD COLUMN disabled_at BIGINT;
UPDATE webhook_endpoints SET disabled_at = updated_at WHERE disabled IS NOT NULL;

-- The endpoints of all tenants by state: disabled for failing, failing, disabled by hand, working.
CREATE INDEX webhook_endpoints_state ON webhook_endpoints (
  (CASE WHEN disabled IN ('failing', 'gone') THEN 0 WHEN disabled IS NOT NULL THEN 2 WHEN failing_since IS NOT NULL THEN 1 ELSE 3 END),
  seq
);
