import type { ColumnData, RelationData, RelationsData } from '../../config/schema/declaration.ts';
import { isReserved } from '../../config/schema/reserved-names.ts';
import type { SchemaSession } from '../schema/steps.ts';
import { type Engine, isOwnName, VERSION_COLUMN } from '../schema/tables.ts';
import { columnData } from './declared-columns.ts';
import type { FoundColumn, FoundReference, FoundTable } from './found.ts';
import { readPostgresTables } from './postgres-tables.ts';
import { readSqliteTables } from './sqlite-tables.ts';

/** Which tables of a database to declare. */
export interface IntrospectOptions {
  /** The schema of PostgreSQL. Default: the current one. */
  readonly schema?: string | undefined;
  /** The tables; default: all. */
  readonly only?: readonly string[] | undefined;
  readonly except?: readonly string[] | undefined;
}

/** A declaration of tables, and a line for each table or column that it leaves out, with what to do. */
export interface DeclaredTables {
  readonly relations: RelationsData;
  readonly notes: readonly string[];
}

const NAME = /^[A-Za-z][A-Za-z0-9_]{0,62}$/;
const RESERVED_COLUMNS = /^(?:aggregate|cursor|embed|fields|group|having|limit|on|sort|where|and|not|or)$/;
const RESERVED_TABLES = ['update', 'delete', 'user', 'query', 'mutation', 'subscription', 'users'];

/** A table that becomes a relation. */
interface Draft {
  readonly name: string;
  readonly table: FoundTable;
  /** Whether Portico has made it. */
  readonly isOwn: boolean;
  readonly columns: Map<string, ColumnData>;
}

/** Writes the declaration of tables that exist. */
export function declareTables(
  engine: Engine,
  found: readonly FoundTable[],
  { schema, only, except = [] }: IntrospectOptions = {},
): DeclaredTables {
  const notes: string[] = [];
  for (const name of [...(only ?? []), ...except]) {
    if (!found.some((table) => table.name === name))
      notes.push(`${name}: there is no such table; correct its name`);
  }
  const hasUsers = isPortico(found);
  const wanted = found.filter(({ name }) => (only?.includes(name) ?? true) && !except.includes(name));
  const served = wanted.filter((table) => !(hasUsers && isReserved(table.name)));
  const drafts = new Map<string, Draft>();
  for (const table of served) {
    const draft = draftOf(engine, table, notes, schema);
    if (draft === undefined) continue;
    const other = [...drafts.values()].find(({ name }) => name.toLowerCase() === draft.name.toLowerCase());
    if (other === undefined) drafts.set(table.name, draft);
    else
      notes.push(
        `${table.name}: its name differs from ${other.table.name} in case or signs only; make a view with another`,
      );
  }
  const writer = new Writer(drafts, hasUsers, schema, notes);
  return {
    relations: Object.fromEntries([...drafts.values()].map((draft) => [draft.name, writer.relation(draft)])),
    notes,
  };
}

/** Whether the tables of Portico itself are among these. */
function isPortico(found: readonly FoundTable[]): boolean {
  const migrations = found.find(({ name }) => name === 'migrations');
  const columns = migrations?.columns.map(({ name }) => name) ?? [];
  return columns.join() === 'name,applied_at' && found.some(({ name }) => name === 'user_events');
}

function draftOf(
  engine: Engine,
  table: FoundTable,
  notes: string[],
  schema: string | undefined,
): Draft | undefined {
  const { name, key } = table;
  const isOwn = table.columns.some((column) => column.name === VERSION_COLUMN);
  const leave = (why: string) => {
    notes.push(`${name}: ${why}`);
    return undefined;
  };
  if (table.isView)
    return leave(`is a view; to serve it, declare its columns and its key with "existing: true"`);
  if (key.length === 0) return leave('has no primary key; add one, or serve a view with a declared key');
  if (schema === undefined && isReserved(name))
    return leave(
      'has a name that Portico needs for a table of its own; give Portico a schema of its own, or rename the table',
    );
  const columns = new Map<string, ColumnData>();
  for (const column of table.columns) {
    if (isOwn && column.name === VERSION_COLUMN) continue;
    if (isOwn && column.isGenerated) {
      notes.push(`${name}.${column.name}: is computed; declare its expression in computed`);
      continue;
    }
    const data = columnData(engine, table, column, isOwn);
    const why = problemOf(column, data);
    if (why === undefined && data !== undefined) columns.set(column.name, data);
    else notes.push(`${name}.${column.name}: ${why}`);
  }
  const missing = key.filter((column) => !columns.has(column));
  if (missing.length > 0) return leave(`is left out, because its key has ${missing.join(', ')}`);
  const needed = table.columns.filter(
    (column) =>
      !columns.has(column.name) && !column.nullable && !column.isGenerated && column.default === undefined,
  );
  if (!isOwn && needed.length > 0)
    notes.push(`${name}: rows cannot be created without ${needed.map((each) => each.name).join(', ')}`);
  return { name: relationName(name), table, isOwn, columns };
}

function problemOf(column: FoundColumn, data: ColumnData | undefined): string | undefined {
  if (data === undefined)
    return `has the type ${column.type || 'none'}, which Portico does not serve; it is left out. A view can show it as another type`;
  if (!NAME.test(column.name))
    return 'has a name that no parameter can have; it is left out. A view can give it another one';
  return RESERVED_COLUMNS.test(column.name)
    ? 'has the name of a parameter of lists; it is left out. A view can give it another one'
    : undefined;
}

/** The name of a relation: that of its table if a path can have it. */
function relationName(table: string): string {
  const plain = table.replace(/[^A-Za-z0-9_]/g, '_').replace(/^[^A-Za-z]+/, '');
  const name = plain === '' ? 'table' : plain.slice(0, 60);
  return RESERVED_TABLES.includes(name.toLowerCase()) ? `${name}_rows` : name;
}

/** The singular that rules make from the name of a relation; undefined if it has to be written. */
function singularOf(name: string): string | undefined {
  if (/[a-z]ies$/.test(name)) return name.replace(/ies$/, 'y');
  return /[^s]s$/.test(name) ? name.slice(0, -1) : undefined;
}

/** Writes relations, whose references may lead to all others. */
class Writer {
  readonly #drafts: ReadonlyMap<string, Draft>;
  readonly #hasUsers: boolean;
  readonly #schema: string | undefined;
  readonly #notes: string[];
  readonly #singulars = new Set<string>();
  /** The members of relations by name, in lower case. */
  readonly #members = new Map<string, Set<string>>();
  /** The references of each relation by name, once it is written. */
  readonly #references = new Map<string, readonly WrittenReference[]>();

  constructor(
    drafts: ReadonlyMap<string, Draft>,
    hasUsers: boolean,
    schema: string | undefined,
    notes: string[],
  ) {
    this.#drafts = drafts;
    this.#hasUsers = hasUsers;
    this.#schema = schema;
    this.#notes = notes;
    for (const { name, columns } of drafts.values())
      this.#members.set(name, new Set([...columns.keys()].map((column) => column.toLowerCase())));
    for (const draft of drafts.values()) this.#references.set(draft.name, this.#referencesOf(draft));
  }

  relation(draft: Draft): RelationData {
    const { name, table, isOwn, columns } = draft;
    const references = this.#references.get(name) ?? [];
    const written: Record<string, ColumnData> = {};
    for (const [column, data] of columns) {
      const made = references.find((reference) => reference.makes && reference.columns.includes(column));
      if (made === undefined) written[column] = data;
      else written[made.name] = referenceData(made, data);
    }
    for (const reference of references) {
      if (!reference.makes) written[reference.name] = referenceData(reference, undefined);
    }
    const isPlainKey = table.key.join() === 'id' && columns.get('id')?.type === 'serial';
    if (isPlainKey && isOwn && !('open' in (columns.get('id') ?? {}))) delete written.id;
    const one = this.#one(name);
    const { unique, indexes } = this.#indexesOf(draft, references);
    const many = this.#many(draft);
    return {
      ...(!isOwn && { existing: true }),
      ...(this.#schema !== undefined && { schema: this.#schema }),
      ...(one !== undefined && { one }),
      ...(name !== table.name && { table: table.name }),
      ...(!isPlainKey && { key: table.key }),
      columns: written,
      ...(unique.length > 0 && { unique }),
      ...(indexes.length > 0 && { indexes }),
      ...(Object.keys(many).length > 0 && { many }),
      ...(isOwn && !table.isRecorded && { changes: false }),
    };
  }

  #one(name: string): string | undefined {
    const isFree = (each: string) =>
      !this.#singulars.has(each.toLowerCase()) &&
      !RESERVED_TABLES.includes(each.toLowerCase()) &&
      ![...this.#drafts.values()].some((draft) => draft.name.toLowerCase() === each.toLowerCase());
    const standard = singularOf(name);
    let one = standard !== undefined && isFree(standard) ? standard : `${name.slice(0, 55)}Row`;
    while (!isFree(one)) one += '_';
    this.#singulars.add(one.toLowerCase());
    return one === standard ? undefined : one;
  }

  /** Takes a name that no other member of a relation has. */
  #take(relation: string, ...names: readonly string[]): string {
    const taken = this.#members.get(relation) ?? new Set();
    let name =
      names.find((each) => NAME.test(each) && !taken.has(each.toLowerCase())) ?? `${names.at(-1)}_row`;
    while (taken.has(name.toLowerCase())) name += '_';
    taken.add(name.toLowerCase());
    this.#members.set(relation, taken);
    return name;
  }

  #referencesOf(draft: Draft): readonly WrittenReference[] {
    const { name, table, columns } = draft;
    return table.references.flatMap((reference, nth): readonly WrittenReference[] => {
      const target = this.#targetOf(draft, reference);
      if (target === undefined) return [];
      const [first = ''] = reference.columns;
      const isSingle = reference.columns.length === 1;
      const short = first.replace(/(?:_id|Id|ID)$/, '');
      const byName = reference.name?.replace(/[^A-Za-z0-9_]/g, '_');
      const own = draft.isOwn ? byName?.replace(/^.*__reference__/, '') : undefined;
      const names = [
        ...(own !== undefined ? [own] : []),
        ...(isSingle && short !== first && short !== '' ? [short] : []),
        ...(byName !== undefined && !byName.includes('__') ? [byName] : []),
        `${first}_${target}`,
      ];
      const taken = this.#take(name, ...names);
      const isShared = table.references.some(
        (other, at) => at !== nth && other.columns.some((column) => reference.columns.includes(column)),
      );
      const data = columns.get(first);
      // A reference cannot say the other options of its column.
      const isPlain = data !== undefined && !('generated' in data) && data.type !== 'serial';
      const inverse = this.#take(target, name, `${name}_by_${taken}`);
      const isUnique = table.indexes.some(
        (index) => index.isUnique && index.isPlain && index.columns.join() === first,
      );
      return [
        {
          name: taken,
          to: target,
          columns: reference.columns,
          inverse: inverse === name ? undefined : inverse,
          onDelete: reference.onDelete,
          makes: isSingle && !isShared && isPlain,
          isUnique: isUnique && isSingle && !isShared && isPlain,
        },
      ];
    });
  }

  /** The relation to which a reference leads; undefined, with a note, if none can be declared. */
  #targetOf({ table, columns }: Draft, { columns: own, table: to, schema, targetColumns }: FoundReference) {
    const place = `${table.name}.${own.join(', ')}`;
    if (own.some((column) => !columns.has(column))) return undefined;
    if (this.#hasUsers && schema === undefined && to === 'users') return 'users';
    const target = schema === undefined ? this.#drafts.get(to) : undefined;
    if (target === undefined) {
      this.#notes.push(`${place}: refers to ${to}, which is not served; it is a plain column`);
      return undefined;
    }
    if ([...targetColumns].sort().join() !== [...target.table.key].sort().join()) {
      this.#notes.push(`${place}: refers to other columns of ${to} than its key; it is a plain column`);
      return undefined;
    }
    const isOrdered = targetColumns.join() === target.table.key.join();
    const types = own.map((column, i) => [columns.get(column), target.columns.get(targetColumns[i] ?? '')]);
    if (isOrdered && types.every(([a, b]) => comparedType(a) === comparedType(b))) return target.name;
    this.#notes.push(`${place}: has another type or order than the key of ${to}; it is a plain column`);
    return undefined;
  }

  #indexesOf({ table, isOwn, columns }: Draft, references: readonly WrittenReference[]) {
    const unique: string[][] = [];
    const indexes: string[][] = [];
    // A key that folds has a unique index besides.
    const seen = { unique: new Set([table.key.join()]), index: new Set([table.key.join()]) };
    for (const reference of references) if (reference.isUnique) seen.unique.add(reference.columns.join());
    for (const index of table.indexes) {
      if (!index.isPlain || !index.columns.every((column) => columns.has(column))) continue;
      if (index.columns.some((column) => columns.get(column)?.type === 'json')) continue;
      const isOwnIndex = isOwn && isOwnName(table.name, index.name);
      // Portico's indexes end with the key, and references have theirs without being told.
      const found = isOwnIndex && !index.isUnique ? withoutKey(index.columns, table.key) : [...index.columns];
      if (
        isOwnIndex &&
        !index.isUnique &&
        references.some((reference) => reference.columns.join() === found.join())
      )
        continue;
      if (index.folded.length > 0 && !isOwn) continue;
      const known = index.isUnique ? seen.unique : seen.index;
      if (found.length === 0 || known.has(found.join()) || found.length > 16) continue;
      known.add(found.join());
      (index.isUnique ? unique : indexes).push(found);
    }
    return { unique: unique.slice(0, 30), indexes: indexes.slice(0, 30) };
  }

  /** The many-to-manies through relations that do nothing but connect. */
  #many({ name }: Draft): NonNullable<RelationData['many']> {
    const found: Record<string, { readonly through: string; readonly from?: string; readonly to?: string }> =
      {};
    for (const through of this.#drafts.values()) {
      const references = this.#references.get(through.name) ?? [];
      const [a, b, ...others] = references;
      if (a === undefined || b === undefined || others.length > 0 || a.to === b.to) continue;
      const connects = [...a.columns, ...b.columns];
      const isWhole =
        connects.length === through.columns.size &&
        connects.every((column) => through.table.key.includes(column));
      const [other] = isWhole ? [a, b].filter(({ to }) => to !== name) : [];
      if (other === undefined || (a.to !== name && b.to !== name) || other.to === 'users') continue;
      const taken = this.#members.get(name);
      if (taken?.has(other.to.toLowerCase())) continue;
      found[this.#take(name, other.to)] = { through: through.name };
    }
    return found;
  }
}

interface WrittenReference {
  readonly name: string;
  readonly to: string;
  readonly columns: readonly string[];
  readonly inverse: string | undefined;
  readonly onDelete: FoundReference['onDelete'];
  /** Whether it stands for its column, which is not declared besides. */
  readonly makes: boolean;
  readonly isUnique: boolean;
}

function referenceData(
  { name, to, columns, inverse, onDelete, makes, isUnique }: WrittenReference,
  column: ColumnData | undefined,
): ColumnData {
  const [only] = columns.length === 1 ? columns : [];
  const isStandard = makes && only === `${name}_id`;
  const { nullable, default: given } = (column ?? {}) as { nullable?: boolean; default?: string | number };
  return {
    type: 'reference',
    to,
    ...(!isStandard && { columns }),
    ...(inverse !== undefined && { inverse }),
    ...(onDelete !== 'restrict' && { onDelete }),
    ...(nullable === true && { nullable }),
    ...(given !== undefined && { default: given }),
    ...(isUnique && { unique: true }),
  };
}

function withoutKey(columns: readonly string[], key: readonly string[]): string[] {
  const rest = [...columns];
  while (rest.length > 0 && key.includes(rest.at(-1) ?? '')) rest.pop();
  return rest;
}

/** Types between which references are possible, as the declaration compares them. */
function comparedType(data: ColumnData | undefined): string {
  if (data === undefined) return '';
  switch (data.type) {
    case 'serial':
      return 'integer';
    case 'decimal':
      return `decimal ${data.precision} ${data.scale}`;
    case 'text':
      return `text ${data.fold === true}`;
    case 'enum':
      return `enum ${JSON.stringify(data.values)}`;
    default:
      return data.type;
  }
}

/** Reads the tables and views of a schema, by default the current one; SQLite has one schema. */
export async function readFoundTables(
  session: SchemaSession,
  schema?: string,
): Promise<readonly FoundTable[]> {
  return session.engine === 'sqlite' ? readSqliteTables(session) : readPostgresTables(session, schema);
}
