-- What an import with a key began with: the line up to which it is recorded, a colon, and a digest of what stood up to there.
ALTER TABLE imports ADD COLUMN digest TEXT;
