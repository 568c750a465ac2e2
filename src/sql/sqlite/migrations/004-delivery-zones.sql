-- Zones of consecutive deliveries, each with its lowest and highest `id`, to find a delivery by its id. An index would
-- have an entry for each delivery, which costs a third of storing one, and only people look up ids. Deliveries behind
-- the last zone are in no zone yet.
CREATE TABLE delivery_zones (
  last_seq INTEGER PRIMARY KEY,
  first_seq INTEGER NOT NULL,
  first_id TEXT NOT NULL,
  last_id TEXT NOT NULL
) STRICT;

-- The `seq` of a removed delivery is never used again. AUTOINCREMENT would store the highest one here at each commit;
-- Portico stores it when it removes deliveries.
INSERT INTO sqlite_sequence (name, seq)
SELECT 'deliveries', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'deliveries');
