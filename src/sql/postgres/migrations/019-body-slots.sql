-- The bodies of deliveries in a ring of slots, each a partition that is emptied at once. A delivery names the slot of its
-- body; without one the body is in its row. Bodies are only added; what is removed or copied out leaves its body behind.
ALTER TABLE deliveries
  ALTER COLUMN body DROP NOT NULL,
  ADD COLUMN slot SMALLINT,
  ADD COLUMN body_length INTEGER,
  ADD CONSTRAINT deliveries_body CHECK (num_nulls(body, slot) = 1) NOT VALID;

CREATE TABLE delivery_bodies (
  slot SMALLINT NOT NULL,
  seq BIGINT NOT NULL,
  body BYTEA NOT NULL,
  PRIMARY KEY (slot, seq)
) PARTITION BY LIST (slot);

DO $$
BEGIN
  FOR slot IN 0..31 LOOP
    EXECUTE format('CREATE TABLE delivery_bodies_%s PARTITION OF delivery_bodies FOR VALUES IN (%s)', slot, slot);
  END LOOP;
END $$;

CREATE TABLE body_slots (
  slot SMALLINT PRIMARY KEY,
  -- Since when new bodies go there; null: they do not.
  opened_at BIGINT,
  -- When that ended for the last time.
  closed_at BIGINT NOT NULL DEFAULT 0,
  -- A transaction before which the last delivery had left it; null: some may be there.
  unused_since XID8
) WITH (fillfactor = 50);

CREATE UNIQUE INDEX body_slots_open ON body_slots ((true)) WHERE opened_at IS NOT NULL;

INSERT INTO body_slots (slot) SELECT generate_series(0, 31);
INSERT INTO retention_cursors (rule, at, seq) VALUES ('bodies', 0, 0);

-- A version that knows no slots may run on during an update. It claims no job whose body it cannot read, and removes no
-- delivery whose size it does not know.
CREATE FUNCTION require_slots() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'the body of a delivery is in a slot, of which this client does not know'
      USING HINT = 'Update Portico; in a session of your own: SET portico.bodies = ''slots''';
  END IF;
  IF EXISTS (SELECT FROM deliveries WHERE seq = NEW.delivery AND slot IS NOT NULL) THEN RETURN NULL; END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER jobs_readable BEFORE UPDATE OF owner ON jobs FOR EACH ROW
  WHEN (NEW.owner IS NOT NULL AND current_setting('portico.bodies', true) IS DISTINCT FROM 'slots')
  EXECUTE FUNCTION require_slots();

CREATE TRIGGER deliveries_sized BEFORE DELETE ON deliveries FOR EACH ROW
  WHEN (OLD.slot IS NOT NULL AND current_setting('portico.bodies', true) IS DISTINCT FROM 'slots')
  EXECUTE FUNCTION require_slots();
