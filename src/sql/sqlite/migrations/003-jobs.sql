-- What the receiver answered to the successful attempt: with `duration` and `ended_by`, a success needs no row in
-- `attempts`, whether it has an answer or not. Rows of earlier successes stay there.
ALTER TABLE jobs ADD COLUMN answer_status INTEGER;
ALTER TABLE jobs ADD COLUMN answer TEXT;
