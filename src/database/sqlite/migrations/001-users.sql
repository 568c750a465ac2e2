-- AUTOINCREMENT: the id of a deleted user is never given to another one.
CREATE TABLE users (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  email TEXT NOT NULL
) STRICT;
