import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { ColumnData, RelationData, RelationsData } from '../../../src/config/schema/declaration.ts';
import { readRelations } from '../../../src/config/schema/relations.ts';
import type { Column, ColumnType, Relation } from '../../../src/relations/relation.ts';
import { expressions } from './expressions.ts';
import { columnTypes, jsonOf } from './random-columns.ts';

/** A declaration as a user writes it, and as it is read. */
export interface RandomDeclaration {
  readonly data: RelationsData;
  readonly relations: readonly Relation[];
}

const NAMES = ['authors', 'books', 'loans', 'cities'] as const;
/** Types whose values are different often enough for a key. */
const KEYS = ['text', 'integer', 'bigint', 'decimal', 'date', 'timestamp', 'uuid', 'enum'] as const;
const PLAIN = Object.keys(columnTypes).filter((kind) => kind !== 'serial') as ColumnType['kind'][];

/** A type as the declaration writes it. */
function dataOf({ kind, ...options }: ColumnType): ColumnData {
  const written = Object.entries(options).map(([name, value]) => [
    name,
    typeof value === 'bigint' ? String(value) : value,
  ]);
  return { type: kind, ...Object.fromEntries(written) } as ColumnData;
}

function typesOf(kinds: readonly ColumnType['kind'][]): fc.Arbitrary<ColumnType> {
  return fc.oneof(...kinds.map((kind) => columnTypes[kind]));
}

/** Types of a key, in which no text folds. */
const keyTypes = typesOf(KEYS).map((type) => (type.kind === 'text' ? { ...type, fold: false } : type));

const plainColumn = typesOf(PLAIN).chain((type) =>
  fc.record({
    type: fc.constant(type),
    nullable: fc.boolean(),
    default: fc.option(jsonOf(type), { nil: undefined, freq: 4 }),
    unique: fc.boolean().map((isUnique) => isUnique && type.kind !== 'json' && type.kind !== 'boolean'),
  }),
);

const relationParts = fc.record({
  key: fc.oneof(
    fc.constant('id' as const),
    fc.constant('open' as const),
    keyTypes.map((type) => ({ single: type })),
    keyTypes.map((type) => ({ composite: type })),
  ),
  columns: fc.array(plainColumn, { minLength: 1, maxLength: 4 }),
  computed: fc.array(expressions(['c0', 'c1', 'c2', 'c3']), { maxLength: 4 }),
  references: fc.array(
    fc.record({
      to: fc.nat(),
      isToUsers: fc.boolean(),
      nullable: fc.boolean(),
      onDelete: fc.constantFrom('restrict' as const, 'cascade' as const, 'null' as const),
      unique: fc.boolean(),
    }),
    { maxLength: 2 },
  ),
  isIndexed: fc.boolean(),
  changes: fc.boolean(),
});

type Parts = typeof relationParts extends fc.Arbitrary<infer T> ? T : never;

type PlainColumn = typeof plainColumn extends fc.Arbitrary<infer T> ? T : never;

function columnData(column: PlainColumn): ColumnData {
  return {
    ...dataOf(column.type),
    ...(column.nullable ? { nullable: true } : {}),
    ...(column.default === undefined ? {} : { default: column.default }),
    ...(column.unique ? { unique: true } : {}),
  } as ColumnData;
}

/** Columns of users: those that have them already get none, or the default. */
const userColumns = fc
  .array(plainColumn, { maxLength: 2 })
  .map((columns) =>
    columns.map((column) =>
      column.default === undefined ? { ...column, nullable: true } : { ...column, unique: false },
    ),
  );

function relationOf(all: readonly Parts[], at: number, hasUsers: boolean): RelationData {
  const { key, columns, computed, references, isIndexed, changes } = all[at] as Parts;
  const name = NAMES[at] ?? '';
  const isComposite = (place: number) =>
    typeof all[place]?.key === 'object' && 'composite' in (all[place]?.key ?? {});
  const declared: Record<string, ColumnData> = {};
  if (key === 'open') declared.id = { type: 'serial', open: true };
  if (typeof key === 'object') declared.k = dataOf('single' in key ? key.single : key.composite);
  if (isComposite(at)) declared.n = { type: 'integer', min: 0, max: 3 };
  for (const [n, column] of columns.entries()) declared[`c${n}`] = columnData(column);
  for (const [n, { to, isToUsers, nullable, onDelete, unique }] of references.entries()) {
    if (isToUsers && hasUsers) {
      const isNullable = nullable || onDelete === 'null';
      declared[`r${n}`] = {
        type: 'reference',
        to: 'users',
        inverse: `${name}_${n}`,
        onDelete,
        ...(isNullable ? { nullable: true } : {}),
      };
      continue;
    }
    const place = to % all.length;
    // What comes later cannot be there first.
    const isNullable = nullable || onDelete === 'null' || place >= at;
    declared[`r${n}`] = {
      type: 'reference',
      to: NAMES[place] ?? '',
      inverse: `${name}_${n}`,
      onDelete,
      ...(isNullable ? { nullable: true } : {}),
      ...(unique && place !== at ? { unique: true } : {}),
      ...(isComposite(place) ? { columns: [`r${n}_n`, `r${n}_k`] } : {}),
    };
  }
  const indexed = columns.flatMap(({ type }, n) => (type.kind === 'json' ? [] : [`c${n}`]));
  return {
    columns: declared,
    computed: Object.fromEntries(computed.map((each, n) => [`e${n}`, each])),
    ...(typeof key === 'object' ? { key: isComposite(at) ? ['n', 'k'] : ['k'] } : {}),
    ...(isIndexed && indexed.length > 0 ? { indexes: [indexed] } : {}),
    changes,
    many: manyOf(all, at, hasUsers),
  };
}

/** What is connected with a relation by others that refer to it first. */
function manyOf(all: readonly Parts[], at: number, hasUsers: boolean): NonNullable<RelationData['many']> {
  const found = all.flatMap(({ references: [first, second] }, place) => {
    const isOurs = first !== undefined && first.to % all.length === at && !(first.isToUsers && hasUsers);
    const through = NAMES[place] ?? '';
    return isOurs && second !== undefined ? [[`m${place}`, { through, from: 'r0', to: 'r1' }] as const] : [];
  });
  return Object.fromEntries(found);
}

/** The computed columns that a declaration can have, each with an index. */
function withPossible(name: string, data: RelationData): RelationData {
  const possible = Object.entries(data.computed ?? {}).filter(([column, expression]) => {
    const problems: string[] = [];
    const columns = Object.fromEntries(Object.entries(data.columns).filter(([each]) => /^c\d$/.test(each)));
    readRelations({ value: { [name]: { columns, computed: { [column]: expression } } }, path: '' }, problems);
    return problems.length === 0;
  });
  const indexes = [...(data.indexes ?? []), ...possible.slice(0, 1).map(([column]) => [column])];
  return { ...data, computed: Object.fromEntries(possible), indexes };
}

function read(given: RelationsData): RandomDeclaration {
  const data = Object.fromEntries(
    Object.entries(given).map(([name, each]) => [name, name === 'users' ? each : withPossible(name, each)]),
  );
  const problems: string[] = [];
  const relations = readRelations({ value: data, path: 'random: relations' }, problems);
  assert.deepEqual(problems, []);
  return { data, relations };
}

const relationsParts = fc.array(relationParts, { minLength: 1, maxLength: NAMES.length });

function dataOfAll(all: readonly Parts[], hasUsers: boolean): RelationsData {
  return Object.fromEntries(all.map((_, at) => [NAMES[at], relationOf(all, at, hasUsers)])) as RelationsData;
}

/** Random declarations of one to four relations, with keys and references of all kinds. */
export const declarations: fc.Arbitrary<RandomDeclaration> = relationsParts.map((all) =>
  read(dataOfAll(all, false)),
);

/** Random declarations that also add columns to users and refer to them. */
export const declarationsWithUsers: fc.Arbitrary<RandomDeclaration> = fc
  .record({ all: relationsParts, columns: userColumns, hasManager: fc.boolean() })
  .map(({ all, columns, hasManager }) => {
    const added = Object.fromEntries(columns.map((column, n) => [`u${n}`, columnData(column)]));
    const manager: ColumnData = {
      type: 'reference',
      to: 'users',
      inverse: 'reports',
      nullable: true,
      onDelete: 'null',
    };
    const users = { columns: { ...added, ...(hasManager ? { manager } : {}) } };
    return read({ ...dataOfAll(all, true), users });
  });

/** Names and emails that `POST /users` takes. */
const USERS = {
  name: fc.constantFrom('Ann', 'ann', 'Bob', '\u00c4nn', 'b'),
  email: fc.constantFrom('a@b', 'A@B', 'x@y.z', '\u{1f600}@z'),
};

/**
 * The JSON of a new row. Columns of references are absent: whoever writes the row fills them with keys of
 * rows that are there.
 */
export function bodies({
  name: relation,
  columns,
  references,
  key,
}: Relation): fc.Arbitrary<Readonly<Record<string, unknown>>> {
  const made = new Set(references.flatMap((reference) => reference.columns));
  const members = columns
    .filter(({ name, type, computed }) => !made.has(name) && type.kind !== 'serial' && computed === undefined)
    .map((column) => [column.name, memberOf(column, key.includes(column.name))] as const);
  const users = relation === 'users' ? USERS : {};
  return fc
    .record({ ...Object.fromEntries(members), ...users })
    .map((body) => Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)));
}

/** A value of a column, also null where it may be, or undefined where it may be absent. */
function memberOf({ type, nullable, default: standard }: Column, isKey: boolean): fc.Arbitrary<unknown> {
  // An empty key has no path.
  const value = isKey ? jsonOf(type).filter((each) => each !== '') : jsonOf(type);
  const isComputed = standard !== undefined && standard.kind !== 'value';
  const choices = [
    ...(nullable ? [fc.constant(null)] : []),
    ...((nullable || standard !== undefined) && !isComputed ? [fc.constant(undefined)] : []),
  ];
  return fc.oneof({ arbitrary: value, weight: 4 }, ...choices.map((arbitrary) => ({ arbitrary, weight: 1 })));
}
