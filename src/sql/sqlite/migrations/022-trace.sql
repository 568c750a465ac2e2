-- Where the request of a delivery stood in a trace: its traceparent, and behind a space its tracestate. Null without one.
ALTER TABLE deliveries ADD COLUMN trace TEXT;
