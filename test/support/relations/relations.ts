import type { Column, ColumnType, Reference, Relation } from '../../../src/relations/relation.ts';

type Given = Partial<Column> & { readonly name: string; readonly type: ColumnType };

/** A column with the defaults of a declaration. */
export function column(name: string, type: ColumnType, more: Partial<Column> = {}): Given {
  return { name, type, ...more };
}

/** A relation with the defaults of a declaration. */
export function relation(
  name: string,
  given: Partial<Omit<Relation, 'columns'>> & { readonly columns: readonly Given[] },
): Relation {
  return {
    name,
    one: name.replace(/s$/, ''),
    table: name,
    was: undefined,
    key: ['id'],
    unique: [],
    indexes: [],
    references: [],
    inverses: [],
    many: [],
    changes: true,
    ...given,
    columns: given.columns.map((each) => ({ nullable: false, default: undefined, was: undefined, ...each })),
  };
}

function reference(name: string, to: string, inverse: string, onDelete: Reference['onDelete']): Reference {
  return { name, to, columns: [`${name}_id`], targetColumns: ['id'], inverse, onDelete };
}

const serial: ColumnType = { kind: 'serial', open: false };
const integer: ColumnType = { kind: 'integer' };
export const text = (max: number, fold = false): ColumnType => ({ kind: 'text', max, fold });

/** Authors, their books and the loans of these, whose key has two columns. */
export const LIBRARY: readonly Relation[] = [
  relation('authors', {
    columns: [
      column('id', serial),
      column('name', text(120)),
      column('born', { kind: 'date' }, { nullable: true }),
    ],
    indexes: [['name']],
    inverses: [{ name: 'books', relation: 'books', reference: 'author' }],
  }),
  relation('books', {
    columns: [
      column('id', serial),
      column('title', text(200)),
      column('pages', { kind: 'integer', min: 1 }, { nullable: true }),
      column(
        'price',
        { kind: 'decimal', precision: 10, scale: 2, min: '0' },
        {
          default: { kind: 'value', value: '9.90' },
        },
      ),
      column('author_id', integer),
      column('published', { kind: 'date' }, { nullable: true }),
    ],
    unique: [['author_id', 'title']],
    indexes: [['published', 'id'], ['author_id']],
    references: [reference('author', 'authors', 'books', 'restrict')],
    inverses: [{ name: 'loans', relation: 'loans', reference: 'book' }],
  }),
  relation('loans', {
    columns: [
      column('book_id', integer),
      column('reader', text(60)),
      column('until', { kind: 'timestamp' }, { nullable: true }),
    ],
    key: ['book_id', 'reader'],
    references: [reference('book', 'books', 'loans', 'cascade')],
  }),
];

/** A relation with a column of each type, whose numbers are open. */
export const SPECIMENS: Relation = relation('specimens', {
  columns: [
    column('id', { kind: 'serial', open: true }),
    column('code', text(8, true)),
    column(
      'kind',
      { kind: 'enum', values: ['alpha', 'beta'] },
      {
        default: { kind: 'value', value: 'alpha' },
      },
    ),
    column('whole', integer, { nullable: true }),
    column('big', { kind: 'bigint' }, { nullable: true }),
    column('amount', { kind: 'decimal', precision: 18, scale: 3 }, { nullable: true }),
    column('ratio', { kind: 'number' }, { nullable: true }),
    column('flag', { kind: 'boolean' }, { default: { kind: 'value', value: false } }),
    column('day', { kind: 'date' }, { nullable: true }),
    column('at', { kind: 'timestamp' }, { nullable: true }),
    column('made', { kind: 'timestamp' }, { default: { kind: 'now' } }),
    column('token', { kind: 'uuid' }, { default: { kind: 'v7' } }),
    column('data', { kind: 'json', maxBytes: 1_000 }, { nullable: true }),
    column('raw', { kind: 'bytes', max: 100 }, { nullable: true }),
  ],
  unique: [['code']],
});
