-- The kept headers of the request as a JSON object, by name in lower case; most deliveries have none.
ALTER TABLE deliveries ADD COLUMN headers TEXT;
