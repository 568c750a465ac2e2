import type { MaybePromise } from '../../core/scheduler.ts';

/** A row as an array of columns. */
export type Row = readonly unknown[];

type Scalar = string | number | null;

/** A value of a parameter: one value, a list for `isIn`, or the rows of a table for `rows`. */
export type Value = Scalar | Uint8Array | readonly Scalar[] | Table;

/** The rows of a parameter. */
interface Table {
  readonly rows: readonly (readonly Scalar[])[];
}

/** A statement written once for both engines, whose parameters are `$1`, `$2` and so on. */
export interface Query {
  /** Unique; PostgreSQL prepares the statement under it. Empty: the statement is not prepared. */
  readonly name: string;
  readonly sqlite: string;
  readonly postgres: string;
  /**
   * Whether it may take long: SQLite runs it on the reader thread if there is one, PostgreSQL alone on a
   * connection and planned for its values.
   */
  readonly isLong: boolean;
}

/** A statement with its values. */
export type Step = readonly [query: Query, ...values: readonly Value[]];

/** The statements of both engines. All methods fail with StoreUnavailableError. */
export interface Sql {
  read(query: Query, ...values: readonly Value[]): MaybePromise<readonly Row[]>;
  /** Runs steps in one commit; resolves to the rows of each once they are durable. */
  write(...steps: readonly Step[]): Promise<readonly (readonly Row[])[]>;
}

/** The type of a parameter, as PostgreSQL has to know it. */
type Type = 'text' | 'bigint';

/** The words in which the engines differ. */
export interface Dialect {
  /** One text or the other, for what a single statement needs. */
  either(sqlite: string, postgres: string): string;
  /** The condition that a column is in the list of a parameter. */
  isIn(column: string, parameter: string, type: Type): string;
  /**
   * The condition that a column is among the rows of a query. PostgreSQL looks up each of them, whatever its
   * statistics say.
   */
  among(column: string, query: string): string;
  /** A table with the rows of a parameter and their number `nth`, from 0. */
  rows(parameter: string, columns: Readonly<Record<string, Type>>): string;
  /** Ends a query whose rows the statement changes: takes their locks, in the order of the rows. */
  readonly lock: string;
  /** The same, but leaves out the rows that others have locked. */
  readonly lockFree: string;
  /** The largest of several values; none may be null. */
  greatest(...values: readonly string[]): string;
  /** The time of a parameter. PostgreSQL uses the server's time if it is null. */
  timeOr(parameter: string): string;
  /** The time of a parameter, but on PostgreSQL not after the server's time. */
  notAhead(parameter: string): string;
  /** The condition that no other transaction holds the lock of a name; takes it until the commit. */
  tryLock(name: string): string;
  /** A text that ignores the case of A to Z, as users are compared and indexed. */
  folded(text: string): string;
  /** A row of users as a JSON object. */
  readonly userJson: string;
}

export const SQLITE: Dialect = {
  either: (sqlite) => sqlite,
  isIn: (column, parameter) => `${column} IN (SELECT value FROM json_each(${parameter}))`,
  among: (column, query) => `${column} IN (${query})`,
  rows(parameter, columns) {
    const selected = Object.keys(columns).map((name, i) => `value ->> ${i} AS ${name}`);
    return `(SELECT ${selected.join(', ')}, key AS nth FROM json_each(${parameter}))`;
  },
  lock: '',
  lockFree: '',
  greatest: (...values) => `max(${values.join(', ')})`,
  timeOr: (parameter) => parameter,
  notAhead: (parameter) => parameter,
  // There is one writer.
  tryLock: () => 'true',
  folded: (text) => `${text} COLLATE NOCASE`,
  userJson: `json_object('id', id, 'name', name, 'email', email)`,
};

/** The server's time in milliseconds since the epoch, because the clocks of processes differ. */
export const SERVER_NOW = '(extract(epoch FROM statement_timestamp()) * 1000)::bigint';

export const POSTGRES: Dialect = {
  either: (_, postgres) => postgres,
  isIn: (column, parameter, type) => `${column} = ANY (${parameter}::${type}[])`,
  among: (column, query) => `${column} = ANY (ARRAY(${query}))`,
  rows(parameter, columns) {
    const selected = Object.entries(columns).map(([name, type], i) => `(value ->> ${i})::${type} AS ${name}`);
    return `(SELECT ${selected.join(', ')}, nth - 1 AS nth FROM json_array_elements(${parameter}::json) WITH ORDINALITY AS given (value, nth))`;
  },
  lock: 'FOR UPDATE',
  lockFree: 'FOR UPDATE SKIP LOCKED',
  greatest: (...values) => `greatest(${values.join(', ')})`,
  timeOr: (parameter) => `coalesce(${parameter}::bigint, ${SERVER_NOW})`,
  notAhead: (parameter) => `least(${parameter}::bigint, ${SERVER_NOW})`,
  tryLock: (name) => `pg_try_advisory_xact_lock(hashtextextended(${name}, 0))`,
  // The collation "C" folds only A to Z and sorts by bytes.
  folded: (text) => `lower(${text} COLLATE "C")`,
  // Concatenated, because json_build_object inserts spaces.
  userJson: `'{"id":' || id || ',"name":' || to_json(name)::text || ',"email":' || to_json(email)::text || '}'`,
};

/** A statement that may take long; see `Query`. */
interface Long {
  readonly long: string;
}

/** Writes statements once for both engines. Their names begin with that of the group. */
export function queries<Name extends string>(
  group: string,
  write: (sql: Dialect) => Readonly<Record<Name, string | Long>>,
): Readonly<Record<Name, Query>> {
  const [sqlite, postgres] = [write(SQLITE), write(POSTGRES)];
  const textOf = (statement: string | Long) => (typeof statement === 'string' ? statement : statement.long);
  const query = (name: Name): Query => ({
    name: `${group}.${name}`,
    // A `$` would be the name of a parameter there.
    sqlite: textOf(sqlite[name]).replaceAll('$', '?'),
    postgres: textOf(postgres[name]),
    isLong: typeof sqlite[name] !== 'string',
  });
  const names = Object.keys(sqlite) as Name[];
  return Object.fromEntries(names.map((name) => [name, query(name)])) as Record<Name, Query>;
}
