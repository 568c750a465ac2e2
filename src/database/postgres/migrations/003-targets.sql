-- When a process last said that it runs the jobs of a target, a handler or a forward address. A target that has open
-- jobs and was never heard of is here since it was first looked at. What nobody has run for long is given up.
CREATE TABLE targets (
  name TEXT COLLATE "C" PRIMARY KEY,
  seen_at BIGINT NOT NULL
);
