-- Where to look for the `id` of a delivery: each zone is a run of deliveries, and the ids in it are not outside the two
-- that stand here. An index would have an entry for each delivery, which costs a third of storing one, and ids are
-- asked for by people only. Deliveries behind the last zone are in none yet.
CREATE TABLE delivery_zones (
  last_seq INTEGER PRIMARY KEY,
  first_seq INTEGER NOT NULL,
  first_id TEXT NOT NULL,
  last_id TEXT NOT NULL
) STRICT;

-- The `seq` of a removed delivery is never given to another one. AUTOINCREMENT would note the highest here at each commit;
-- it is noted when deliveries are removed.
INSERT INTO sqlite_sequence (name, seq)
SELECT 'deliveries', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'deliveries');
