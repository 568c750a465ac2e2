-- A vacuum after a fiftieth of the rows were removed, as for jobs, and not after a fifth: of a large table that is days of
-- space, which retention has freed and nothing can use.
ALTER TABLE deliveries SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
ALTER TABLE attempts SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
