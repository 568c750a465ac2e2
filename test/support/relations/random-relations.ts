import fc from 'fast-check';
import { codecOf } from '../../../src/relations/codecs.ts';
import type { Column, ColumnType, Default, Reference, Relation } from '../../../src/relations/relation.ts';
import { column, relation, serial, text } from './hand-made.ts';
import { columnTypes, jsonOf } from './random-columns.ts';

const NAMES = ['apples', 'pears', 'plums', 'Figs'] as const;
const COLUMNS = ['a', 'b', 'c', 'Dd', 'order', 'e_f'] as const;

const anyType: fc.Arbitrary<ColumnType> = fc.oneof(
  ...Object.entries(columnTypes).flatMap(([kind, type]) => (kind === 'serial' ? [] : [type])),
);

/** A default that the declaration's reader accepts for a type. */
function defaultOf(type: ColumnType): fc.Arbitrary<Default | undefined> {
  const constant = jsonOf(type).map((json): Default | undefined => {
    const parsed = codecOf(type).parse(json);
    return 'value' in parsed ? { kind: 'value', value: parsed.value } : undefined;
  });
  const computed: Default | undefined =
    type.kind === 'timestamp' || type.kind === 'date'
      ? { kind: 'now' }
      : type.kind === 'uuid'
        ? { kind: 'v7' }
        : undefined;
  return fc.oneof(constant, fc.constantFrom(undefined, computed));
}

function columnOf(name: string): fc.Arbitrary<Column> {
  return anyType.chain((type) =>
    fc.record({ nullable: fc.boolean(), default: defaultOf(type) }).map((more) => column(name, type, more)),
  );
}

const isComparable = ({ type }: Column) => type.kind !== 'json' && type.kind !== 'bytes';

interface Draft {
  readonly name: string;
  readonly key: 'serial' | 'open' | 'text' | 'two';
  readonly columns: readonly Column[];
  readonly references: readonly {
    readonly name: string;
    readonly to: number;
    readonly onDelete: Reference['onDelete'];
  }[];
  readonly lists: readonly { readonly isUnique: boolean; readonly columns: readonly number[] }[];
}

function draftOf(name: string): fc.Arbitrary<Draft> {
  return fc
    .uniqueArray(fc.constantFrom(...COLUMNS), { maxLength: 4 })
    .chain((names) => fc.tuple(...names.map(columnOf)))
    .chain((columns) =>
      fc.record({
        name: fc.constant(name),
        key: fc.constantFrom('serial', 'open', 'text', 'two'),
        columns: fc.constant(columns),
        references: fc.uniqueArray(
          fc.record({
            name: fc.constantFrom('owner', 'Peer'),
            to: fc.nat(3),
            onDelete: fc.constantFrom('restrict', 'cascade', 'null'),
          }),
          { maxLength: 2, selector: (each) => each.name },
        ),
        lists: fc.array(
          fc.record({
            isUnique: fc.boolean(),
            columns: fc.uniqueArray(fc.nat(9), { minLength: 1, maxLength: 3 }),
          }),
          { maxLength: 3 },
        ),
      }),
    );
}

function keyOf({ key }: Draft): readonly Column[] {
  if (key === 'serial') return [column('id', serial)];
  if (key === 'open') return [column('id', { kind: 'serial', open: true })];
  if (key === 'text') return [column('code', text(20, true))];
  return [column('code', text(20)), column('place', { kind: 'integer', min: 0, max: 99 })];
}

function resolved(draft: Draft, all: readonly Draft[]): Relation {
  const key = keyOf(draft);
  const references = draft.references.map(({ name, to, onDelete }): Reference => {
    const target = all[to % all.length] ?? draft;
    const targetColumns = keyOf(target).map((each) => each.name);
    const columns = targetColumns.map((each) => `${name}_${each}`);
    return { name, to: target.name, columns, targetColumns, inverse: `of_${name}`, onDelete };
  });
  const referring = references.flatMap(({ columns, to, onDelete }) =>
    keyOf(all.find(({ name }) => name === to) ?? draft).map((target, at) => {
      const type: ColumnType = target.type.kind === 'serial' ? { kind: 'integer', min: 1 } : target.type;
      return column(columns[at] ?? '', type, { nullable: onDelete === 'null' });
    }),
  );
  const columns = [...key, ...draft.columns, ...referring];
  const comparable = columns.filter(isComparable).map(({ name }) => name);
  const lists = (isUnique: boolean) =>
    draft.lists
      .filter((list) => list.isUnique === isUnique)
      .map((list) => [...new Set(list.columns.map((at) => comparable[at % comparable.length] ?? 'id'))]);
  return relation(draft.name, columns, {
    key: key.map(({ name }) => name),
    unique: lists(true),
    indexes: lists(false),
    references,
  });
}

/** Declarations of up to four relations that refer to each other and to themselves. */
export const randomRelations: fc.Arbitrary<readonly Relation[]> = fc
  .uniqueArray(fc.constantFrom(...NAMES), { minLength: 1, maxLength: 4 })
  .chain((names) => fc.tuple(...names.map(draftOf)))
  .map((drafts) => drafts.map((draft) => resolved(draft, drafts)));
