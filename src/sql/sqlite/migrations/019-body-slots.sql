-- Only PostgreSQL keeps bodies in slots: a file has no partitions.
SELECT 1;
