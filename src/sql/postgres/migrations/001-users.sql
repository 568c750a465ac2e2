-- An identity never gives an id twice, that of a deleted user neither. Ids stay below 2^53, as numbers in JSON must.
CREATE TABLE users (
  id BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
  name TEXT NOT NULL,
  email TEXT NOT NULL
);
