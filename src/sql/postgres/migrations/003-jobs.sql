-- What the receiver answered to the successful attempt: with `duration` and `ended_by`, a success needs no row in
-- `attempts`, whether it has an answer or not. Rows of earlier successes stay there.
ALTER TABLE jobs ADD COLUMN answer_status INTEGER;
ALTER TABLE jobs ADD COLUMN answer TEXT;

-- A job is stored in the statement of its delivery, or under its lock. To check each took half the time of storing it, so
-- the reference is checked from the other side alone.
ALTER TABLE jobs DROP CONSTRAINT jobs_delivery_fkey;

CREATE FUNCTION keep_deliveries_of_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT count(*) FROM jobs WHERE delivery = ANY (ARRAY(SELECT seq FROM removed))) > 0 THEN
    RAISE foreign_key_violation USING MESSAGE = 'a delivery with jobs cannot be removed';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER deliveries_removed AFTER DELETE ON deliveries REFERENCING OLD TABLE AS removed
  FOR EACH STATEMENT EXECUTE FUNCTION keep_deliveries_of_jobs();
