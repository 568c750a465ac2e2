import { DatabaseOpenError } from '../core/store-errors.ts';

const SQLITE = 'sqlite:';
const SEVERAL = /^(?<scheme>postgres(?:ql)?:\/\/)(?<user>[^/?#]*@)?(?<hosts>[^/?#@]+)(?<rest>.*)$/s;

/** A parsed database URL: an SQLite file (or `:memory:`), or a PostgreSQL database by the URL itself. */
export interface DatabaseAddress {
  readonly engine: 'sqlite' | 'postgres';
  readonly place: string;
}

/** Parses a database URL; undefined for anything else. */
export function parseDatabaseUrl(url: string): DatabaseAddress | undefined {
  if (url.startsWith(SQLITE)) return { engine: 'sqlite', place: url.slice(SQLITE.length) };
  if (/^postgres(?:ql)?:\/\//.test(url)) return { engine: 'postgres', place: url };
  return undefined;
}

/** Parses a database URL. Throws DatabaseOpenError, without the URL: it can hold a password. */
export function databaseAt(url: string): DatabaseAddress {
  const address = parseDatabaseUrl(url);
  if (address !== undefined) return address;
  throw new DatabaseOpenError(
    'The database URL names no engine of this version; it starts with sqlite: or postgres://',
  );
}

/**
 * The URLs of the servers in a database URL, in its order: `postgres://user@one:5432,two:5433/db` names two servers.
 * Any other URL is returned as it is.
 */
export function serverUrls(url: string): readonly string[] {
  const { scheme, user = '', hosts, rest } = SEVERAL.exec(url)?.groups ?? {};
  if (hosts === undefined) return [url];
  return hosts.split(',').map((host) => `${scheme}${user}${host}${rest}`);
}
