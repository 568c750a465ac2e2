import type { Column, ColumnType, Reference, Relation } from '../../../src/relations/relation.ts';

/** A column with what most columns have. */
export function column(name: string, type: ColumnType, more: Partial<Column> = {}): Column {
  return { name, type, nullable: false, default: undefined, was: undefined, ...more };
}

export const text = (max: number, fold = false): ColumnType => ({ kind: 'text', max, fold });
export const serial: ColumnType = { kind: 'serial', open: false };

/** A relation with what most relations have. */
export function relation(name: string, columns: readonly Column[], more: Partial<Relation> = {}): Relation {
  return {
    name,
    one: name.replace(/s$/, ''),
    table: name,
    was: undefined,
    columns,
    key: [columns[0]?.name ?? ''],
    unique: [],
    indexes: [],
    references: [],
    inverses: [],
    many: [],
    changes: false,
    ...more,
  };
}

/** A reference to the `id` of a relation. */
export function reference(name: string, to: string, onDelete: Reference['onDelete'] = 'restrict'): Reference {
  return { name, to, columns: [`${name}_id`], targetColumns: ['id'], inverse: `of_${name}`, onDelete };
}

const id = column('id', serial);

/** Authors and their books, who refer to each other, and loans with a composite key. */
export const library: readonly Relation[] = [
  relation(
    'books',
    [
      id,
      column('title', text(5)),
      column('pages', { kind: 'integer', min: 1, max: 9_000 }),
      column('price', { kind: 'decimal', precision: 6, scale: 2, min: '0.00' }),
      column('author_id', { kind: 'integer' }),
      column(
        'sort',
        { kind: 'enum', values: ['novel', "what's else?"] },
        { default: { kind: 'value', value: 'novel' } },
      ),
      column('published', { kind: 'date' }, { nullable: true }),
      column('added', { kind: 'timestamp' }, { nullable: true, default: { kind: 'now' } }),
      column('is_read', { kind: 'boolean' }, { default: { kind: 'value', value: false } }),
      column('weight', { kind: 'number' }, { nullable: true }),
      column('code', { kind: 'uuid' }, { nullable: true }),
      column('size', { kind: 'bigint' }, { nullable: true }),
      column('tags', { kind: 'json', maxBytes: 20 }, { default: { kind: 'value', value: '[]' } }),
      column('cover', { kind: 'bytes', max: 3 }, { nullable: true }),
    ],
    {
      unique: [['author_id', 'title']],
      indexes: [['published', 'id']],
      references: [reference('author', 'authors')],
    },
  ),
  relation(
    'authors',
    [
      id,
      column('name', text(120, true)),
      column('best_id', { kind: 'integer' }, { nullable: true }),
      column('teacher_id', { kind: 'integer' }, { nullable: true }),
    ],
    {
      unique: [['name']],
      references: [reference('best', 'books', 'null'), reference('teacher', 'authors', 'null')],
    },
  ),
  relation('loans', [column('book_id', { kind: 'integer' }), column('reader', text(60))], {
    key: ['book_id', 'reader'],
    references: [reference('book', 'books', 'cascade')],
  }),
];
