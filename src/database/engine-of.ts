import { DatabaseOpenError } from '../core/store-errors.ts';

const SQLITE = 'sqlite:';

/** What a URL names: a file (or `:memory:`) of SQLite, or a PostgreSQL database by the URL itself. */
export interface NamedDatabase {
  readonly engine: 'sqlite' | 'postgres';
  readonly place: string;
}

/** Reads the URL of a database; undefined when it names none. */
export function databaseNamed(url: string): NamedDatabase | undefined {
  if (url.startsWith(SQLITE)) return { engine: 'sqlite', place: url.slice(SQLITE.length) };
  if (/^postgres(?:ql)?:\/\//.test(url)) return { engine: 'postgres', place: url };
  return undefined;
}

/** As `databaseNamed`. Throws DatabaseOpenError; the URL itself is never shown, it can hold a password. */
export function engineOf(url: string): NamedDatabase {
  const named = databaseNamed(url);
  if (named !== undefined) return named;
  throw new DatabaseOpenError(
    'The database URL names no engine of this version; it starts with sqlite: or postgres://',
  );
}
