import * as v from 'valibot';
import { isRecord } from '../../core/json.ts';
import { didYouMean, quote } from '../../core/text.ts';
import {
  columnSchemas,
  EXISTING_NAME,
  NAME,
  NAMED,
  nameField,
  type ReadColumn,
  readColumn,
  withoutLater,
} from './columns.ts';
import { computedSchema } from './computed.ts';
import { type Named, namedOf, pathTo, readObject, textField, toggleField } from './fields.ts';
import { rulesSchema } from './rules.ts';

const MAX_COLUMNS = 200;
/** Parameters of lists and operators of conditions. */
const RESERVED_COLUMNS = [
  ...['aggregate', 'cursor', 'embed', 'fields', 'group', 'having', 'limit', 'on', 'sort', 'where'],
  ...['and', 'not', 'or'],
];

const COLUMN_LISTS = 'must be an array of arrays of columns';
const columnLists = v.optional(v.array(v.array(v.string(COLUMN_LISTS), COLUMN_LISTS), COLUMN_LISTS));

const relationSchema = v.object(
  {
    one: v.optional(nameField),
    table: v.optional(textField(/^[^\0]{1,63}$/u, 'must be the name of a table, at most 63 characters')),
    existing: v.optional(toggleField),
    schema: v.optional(textField(/^[^\0]{1,63}$/u, 'must be the name of a schema')),
    was: v.optional(nameField),
    columns: v.unknown(),
    key: v.optional(v.array(v.string(), 'must be an array of columns')),
    unique: columnLists,
    indexes: columnLists,
    many: v.optional(
      v.record(
        v.string(),
        v.strictObject(
          {
            through: v.string('must be a relation'),
            from: v.optional(v.string()),
            to: v.optional(v.string()),
          },
          'must be an object with through',
        ),
        'must be an object of many-to-manies by name',
      ),
    ),
    changes: v.optional(toggleField),
    computed: v.optional(v.unknown()),
    before: v.optional(v.unknown()),
    rules: v.optional(v.unknown()),
  },
  'must be an object with columns',
);

/** The relations of a portico.config.json, for its JSON Schema. */
export const relationsSchema = v.record(
  v.string(),
  v.object({
    ...v.omit(relationSchema, ['before']).entries,
    computed: v.optional(computedSchema),
    rules: v.optional(rulesSchema),
    columns: v.record(
      v.string(),
      v.union(
        Object.entries(columnSchemas).map(([type, { entries }]) =>
          v.object({ ...entries, type: v.literal(type) }),
        ),
      ),
    ),
  }),
);

/** What a declaration may say of a relation one day. */
const LATER = ['introspect'];

type RelationOptions = v.InferOutput<typeof relationSchema>;
type ReferenceData = Extract<ReadColumn, { readonly kind: 'reference' }>;

/** A column of a relation: declared, or made by a reference for a column of its target's key. */
export interface Field {
  readonly name: string;
  readonly path: string;
  /** Undefined if it has problems, which are reported already. */
  readonly data: ReadColumn | undefined;
  /** The place in the key of the target. */
  readonly place: number;
}

/** A relation, as far as it could be read without looking at others. */
export interface Draft {
  readonly name: string;
  readonly path: string;
  /** Empty if it is not complete: then some option has a problem. */
  readonly options: Partial<RelationOptions>;
  readonly isComplete: boolean;
  readonly key: readonly string[];
  /** By name; a name that is used twice is a problem. */
  readonly fields: ReadonlyMap<string, Field>;
  /** The names of the computed columns. */
  readonly computed: readonly string[];
  readonly references: ReadonlyMap<
    string,
    { readonly data: ReferenceData; readonly columns: readonly string[] }
  >;
}

/** The key of a relation as it is written; `id` if it has none. */
export function keyOf(value: unknown): readonly string[] {
  const key = isRecord(value) ? value.key : undefined;
  return Array.isArray(key) ? key.map(String) : ['id'];
}

/** Reads a relation as far as it can be understood without the others, except for the names in `keys`. */
export function readDraft(
  { name, value, path }: Named,
  keys: ReadonlyMap<string, readonly string[]>,
  problems: string[],
): Draft {
  const known = { value: withoutLater({ value, path }, LATER, problems), path };
  const options = readObject(relationSchema, known, problems);
  const given = isRecord(value) ? value.columns : undefined;
  const columnsPath = `${path}.columns`;
  if (isRecord(value) && given === undefined)
    problems.push(`${columnsPath} must be an object of columns by name`);
  const declared = namedOf({ value: given, path: columnsPath }, 'columns by name', problems);
  const fields = new Map<string, Field>();
  const isExisting = isRecord(value) && value.existing === true;
  if (!isExisting) checkOwnNames(value, path, problems);
  if (isRecord(value) && value.key === undefined && !declared.some((column) => column.name === 'id'))
    fields.set('id', { name: 'id', path: columnsPath, data: { kind: 'serial' }, place: 0 });
  const referring: Referring[] = [];
  for (const column of declared) {
    checkColumnName(column, problems, isExisting);
    const data = readColumn(column, problems);
    const isReference = isRecord(column.value) && column.value.type === 'reference';
    if (isReference) referring.push({ ...column, data: data?.kind === 'reference' ? data : undefined });
    else fields.set(column.name, { name: column.name, path: column.path, data, place: 0 });
  }
  const references: References = new Map();
  for (const each of referring) addReference(fields, references, each, keys, problems);
  const computed = isRecord(value) && isRecord(value.computed) ? Object.keys(value.computed) : [];
  for (const each of computed)
    checkColumnName({ name: each, path: pathTo(`${path}.computed`, each) }, problems);
  const count = fields.size + computed.length;
  if (count > MAX_COLUMNS)
    problems.push(`${columnsPath} has ${count} columns; at most ${MAX_COLUMNS} are possible`);
  // The columns of a reference stand at its place.
  const paths = [columnsPath, ...declared.map((column) => column.path)];
  const ordered = [...fields.values()].toSorted((a, b) => paths.indexOf(a.path) - paths.indexOf(b.path));
  return {
    name,
    path,
    options: options ?? {},
    isComplete: options !== undefined,
    key: keys.get(name) ?? [],
    computed,
    fields: new Map(ordered.map((field) => [field.name, field])),
    references,
  };
}

/** Checks the names of a table that Portico makes, and of its columns. */
function checkOwnNames(value: unknown, path: string, problems: string[]): void {
  if (!isRecord(value)) return;
  const check = (name: unknown, at: string) => {
    if (typeof name === 'string' && EXISTING_NAME.test(name) && !NAME.test(name))
      problems.push(`${at} ${NAMED}`);
  };
  check(value.one, `${path}.one`);
  check(value.was, `${path}.was`);
  if (typeof value.table === 'string' && !NAME.test(value.table)) problems.push(`${path}.table ${NAMED}`);
  if (value.schema !== undefined) problems.push(`${path}.schema is possible for an existing table only`);
  for (const [name, column] of Object.entries(isRecord(value.columns) ? value.columns : {})) {
    if (!isRecord(column)) continue;
    const at = pathTo(`${path}.columns`, name);
    check(column.was, `${at}.was`);
    check(column.inverse, `${at}.inverse`);
    for (const [nth, each] of (Array.isArray(column.columns) ? column.columns : []).entries())
      check(each, `${at}.columns[${nth}]`);
    if (column.generated !== undefined)
      problems.push(`${at}.generated is possible for an existing table only`);
  }
}

function checkColumnName(
  { name, path }: Pick<Named, 'name' | 'path'>,
  problems: string[],
  isExisting = false,
): void {
  if (!(isExisting ? EXISTING_NAME : NAME).test(name)) problems.push(`${path} ${NAMED}`);
  else if (RESERVED_COLUMNS.includes(name))
    problems.push(`${path} has the name of a parameter or operator of lists; rename it`);
}

type References = Map<string, { readonly data: ReferenceData; readonly columns: readonly string[] }>;

/** A reference as it is declared; without data if that has problems. */
interface Referring extends Named {
  readonly data: ReferenceData | undefined;
}

/** Adds a reference, and its columns unless they are declared. */
function addReference(
  fields: Map<string, Field>,
  references: References,
  { name, path, data }: Referring,
  keys: ReadonlyMap<string, readonly string[]>,
  problems: string[],
): void {
  // The column of a broken reference is used without further problems.
  if (data === undefined) {
    fields.set(`${name}_id`, { name: `${name}_id`, path, data: undefined, place: 0 });
    return;
  }
  const key = keys.get(data.to);
  if (key === undefined) problems.push(`${path}.to ${unknownTarget(data.to, keys)}`);
  const columns = data.columns ?? [`${name}_id`];
  if (key !== undefined && key.length !== columns.length) {
    const wanted = `one for each of ${key.join(', ')}`;
    problems.push(
      data.columns === undefined
        ? `${path} needs columns, ${wanted}, because the key of ${data.to} has ${key.length} columns`
        : `${path}.columns must be ${key.length} columns of this relation, ${wanted} of ${data.to}`,
    );
  }
  if (new Set(columns).size < columns.length) problems.push(`${path}.columns has a column twice`);
  if (columns.includes(name))
    problems.push(`${path}.columns has the name of the reference; rename one of them`);
  for (const [place, column] of columns.entries()) {
    const known = fields.get(column);
    if (known === undefined) fields.set(column, { name: column, path, data, place });
    else if (known.data?.kind === 'reference')
      problems.push(
        `${path} has the column ${column}, which another reference makes; declare it as a column`,
      );
    else if (data.columns === undefined)
      problems.push(
        `${path} makes the column ${column}, which is declared too; write columns: ["${column}"]`,
      );
  }
  references.set(name, { data, columns });
}

function unknownTarget(to: string, keys: ReadonlyMap<string, unknown>): string {
  return `${quote(to)} is not a relation${didYouMean(to, keys.keys())}`;
}
