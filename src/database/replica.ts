/** A copy of the database from which users may be read, if the engine can have one. */
export interface Replica {
  readonly url: string;
  /** For how long after its own write a process does not read from it, in milliseconds. */
  readonly readYourWrites: number;
}
