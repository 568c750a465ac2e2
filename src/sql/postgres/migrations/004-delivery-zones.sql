-- Only SQLite has zones: here the ids of deliveries have an index, and a sequence gives the numbers.
SELECT 1;
