/** What a client sends to create or replace a user. */
export interface NewUser {
  readonly name: string;
  readonly email: string;
}

/** A user as the GraphQL door shows it; its id is a string (contract 2.1). */
export interface User extends NewUser {
  readonly id: string;
}
