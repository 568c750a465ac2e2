import { type Config, withTables } from '../../app/load-config.ts';
import { didYouMean, quote } from '../../core/text.ts';
import type { ImportPosition, ImportTarget } from '../../relations/import.ts';
import { type ExportFormat, exportHead, userPages } from '../../relations/lists.ts';
import { type Relation, USERS } from '../../relations/relation.ts';
import { importKey, rowImports } from '../../relations/rows/import-rows.ts';
import { rowExportHead, rowPages } from '../../relations/rows/row-exports.ts';
import { RowFormat, type RowStore } from '../../relations/rows/rows.ts';
import { type DatabaseUserStore, userImports } from '../../relations/user-stores.ts';
import type { Database } from '../../sql/database.ts';
import type { CommandArguments } from '../arguments.ts';
import { openExisting } from '../database/open.ts';

/** The last row of a piece: the id of a user, or the key of a row as in a path. */
type Place = string | number;

/** Consecutive rows as lines. */
interface Piece {
  readonly bytes: Uint8Array;
  readonly count: number;
  readonly last: Place;
}

/** Users or the rows of a relation, as the commands import and export them. */
export interface Collection extends AsyncDisposable {
  /** `users`, or the name of the relation. */
  readonly name: string;
  /** What one row and several are called. */
  readonly nouns: readonly [one: string, many: string];
  readonly target: ImportTarget<unknown, unknown>;
  /** Starts or resumes an import with a key; resolves to its position. */
  beginImport(key: string): Promise<ImportPosition & { readonly key: string }>;
  count(): Promise<number>;
  /** The place of the last row; undefined without rows. */
  end(): Promise<Place | undefined>;
  /** The text before the rows. */
  head(format: ExportFormat): string;
  pieces(format: ExportFormat, after: Place | undefined, upTo: Place): AsyncIterable<Piece>;
}

/** Whether a name is that of users or of a declared relation. */
export function isCollection({ relations }: Config, name: string): boolean {
  return name === USERS || relations.some((relation) => relation.name === name);
}

/** Opens users or a relation in the database of a configuration. Rejects with UsageError or DatabaseOpenError. */
export async function openCollection(
  given: Config,
  name: string,
  { misuse }: CommandArguments,
  topic: string,
): Promise<Collection> {
  const config = await withTables(given);
  const { relations } = config;
  if (!isCollection(config, name)) {
    const known = [USERS, ...relations.map((relation) => relation.name)];
    const proposal = didYouMean(name, known) || `; there are ${[...new Set(known)].join(', ')}`;
    throw misuse(`The configuration declares no relation ${quote(name)}${proposal}`);
  }
  const database = await openExisting(config, topic);
  if (name === USERS) return usersOf(database);
  try {
    const store = (await database.openRelations(relations)).stores.get(name);
    if (store === undefined) throw new Error(`the relation ${name} was not opened`);
    return rowsOf(database, store);
  } catch (error) {
    await database[Symbol.asyncDispose]();
    throw error;
  }
}

function usersOf(database: Database & { readonly users: DatabaseUserStore }): Collection {
  const { users } = database;
  return {
    name: USERS,
    nouns: ['user', 'users'],
    target: untyped(userImports(users)),
    beginImport: async (key) => ({ key, ...(await users.beginImport(key)) }),
    count: () => users.lists.count([]),
    end: async () => (await users.lastId()) || undefined,
    head: exportHead,
    async *pieces(format, after = 0, upTo) {
      const range = { after: Number(after), upTo: Number(upTo) };
      for await (const { lastId, ...page } of userPages(users, format, range))
        yield { ...page, last: lastId };
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

function rowsOf(database: AsyncDisposable, store: RowStore): Collection {
  const { relation, exports } = store;
  const format = new RowFormat(relation);
  const all = { is: 'and', all: [] } as const;
  return {
    name: relation.name,
    nouns: ['row', 'rows'],
    target: untyped(rowImports(store, undefined)),
    async beginImport(given) {
      const key = importKey(relation, given);
      return { key, ...(await store.beginImport(key)) };
    },
    count: () => store.lists.count(all),
    async end() {
      const key = await exports.lastKey();
      return key && format.path(key);
    },
    head: (name) => rowExportHead(relation, { format: name, fields: undefined }),
    async *pieces(name, after, upTo) {
      const selection = { format: name, where: all, fields: undefined };
      const range = { after: keyAt(relation, format, after), upTo: keyAt(relation, format, upTo) ?? [] };
      for await (const { last, ...page } of rowPages(exports, selection, range)) {
        yield { ...page, last: format.path(last ?? range.upTo) };
      }
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

function keyAt({ name }: Relation, format: RowFormat, place: Place | undefined) {
  if (place === undefined) return undefined;
  const key = format.readPath(String(place));
  if (key === undefined) throw new Error(`${quote(String(place))} is not a key of ${name}`);
  return key;
}

/** A target whose rows only it knows. */
function untyped<Row, Id>(target: ImportTarget<Row, Id>): ImportTarget<unknown, unknown> {
  return target as ImportTarget<unknown, unknown>;
}
