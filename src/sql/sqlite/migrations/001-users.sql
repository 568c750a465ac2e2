-- AUTOINCREMENT: the id of a deleted user is never used again.
CREATE TABLE users (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  email TEXT NOT NULL
) STRICT;
