-- Only PostgreSQL has a vacuum to set: SQLite uses the space of removed rows again at once.
SELECT 1;
