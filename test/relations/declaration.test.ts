import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  add,
  bigint,
  boolean,
  bytes,
  coalesce,
  concat,
  date,
  decimal,
  integer,
  type Json,
  json,
  length,
  lower,
  multiply,
  type NewRow,
  number,
  oneOf,
  type Patch,
  type RelationsData,
  type Row,
  reference,
  serial,
  text,
  timestamp,
  uuid,
} from '../../src/config/schema/declaration.ts';
import { defineConfig } from '../../src/define-config.ts';

/** A configuration with relations alone. */
function declare<const R extends RelationsData>(relations: R) {
  return defineConfig({ relations });
}

const config = declare({
  authors: { columns: { name: text({ max: 120 }), born: date({ nullable: true }) }, indexes: [['name']] },
  books: {
    columns: {
      title: text({ max: 200 }),
      pages: integer({ min: 1 }),
      price: decimal(10, 2, { min: '0' }),
      author: reference('authors', { onDelete: 'restrict' }),
      editor: reference('authors', { inverse: 'edited', nullable: true }),
      tags: json({ default: [] }),
      published: timestamp({ default: 'now' }),
      kind: oneOf(['novel', 'poem'], { default: 'novel' }),
      copies: bigint(),
      rating: number({ nullable: true }),
      sold_out: boolean({ default: false }),
      cover: bytes({ nullable: true }),
    },
    unique: [['author_id', 'title']],
  },
  loans: {
    key: ['book_id', 'reader'],
    columns: { book: reference('books', { onDelete: 'cascade' }), reader: text({ max: 60 }) },
  },
  fines: {
    columns: {
      id: uuid(),
      loan: reference('loans', { columns: ['book', 'reader'] }),
      reader: text({ max: 60 }),
      paid_by: reference('fines', { nullable: true }),
    },
  },
  genres: { columns: { id: serial({ open: true }), name: text() } },
  devices: { columns: { owner: reference('users'), label: text({ max: 20 }) } },
});

/** Whether two types are the same, `readonly` and `?` included. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_isSame: Same<A, B>) => {};

test('the builders make plain data, which is JSON', () => {
  assert.deepEqual(JSON.parse(JSON.stringify(config.relations.books.columns.price)), {
    type: 'decimal',
    precision: 10,
    scale: 2,
    min: '0',
  });
  assert.deepEqual(config.relations.books.columns.kind, {
    type: 'enum',
    values: ['novel', 'poem'],
    default: 'novel',
  });
  assert.deepEqual(config.relations.loans.columns.book, {
    type: 'reference',
    to: 'books',
    onDelete: 'cascade',
  });
  assert.deepEqual(text(), { type: 'text' });
});

test('rows have the types of their columns', () => {
  same<
    Row<typeof config, 'books'>,
    {
      readonly id: number;
      readonly title: string;
      readonly pages: number;
      readonly price: string;
      readonly author_id: number;
      readonly editor_id: number | null;
      readonly tags: Json;
      readonly published: string;
      readonly kind: 'novel' | 'poem';
      readonly copies: string;
      readonly rating: number | null;
      readonly sold_out: boolean;
      readonly cover: string | null;
    }
  >(true);
  same<Row<typeof config, 'loans'>, { readonly book_id: number; readonly reader: string }>(true);
  same<
    Row<typeof config, 'fines'>,
    {
      readonly id: string;
      readonly reader: string;
      readonly book: number;
      readonly paid_by_id: string | null;
    }
  >(true);
  same<
    Row<typeof config, 'devices'>,
    { readonly id: number; readonly owner_id: number; readonly label: string }
  >(true);
  same<Row<typeof config, 'users'>, { readonly id: number; readonly name: string; readonly email: string }>(
    true,
  );
  same<NewRow<typeof config, 'users'>, { readonly name: string; readonly email: string }>(true);
  const staff = declare({
    teams: { columns: { label: text() } },
    users: {
      columns: {
        phone: text({ max: 30, nullable: true }),
        level: integer({ default: 1 }),
        team: reference('teams', { nullable: true }),
        manager: reference('users', { inverse: 'reports', nullable: true }),
      },
      indexes: [['phone']],
    },
  });
  same<
    Row<typeof staff, 'users'>,
    {
      readonly id: number;
      readonly name: string;
      readonly email: string;
      readonly phone: string | null;
      readonly level: number;
      readonly team_id: number | null;
      readonly manager_id: number | null;
    }
  >(true);
  same<
    NewRow<typeof staff, 'users'>,
    {
      readonly name: string;
      readonly email: string;
      readonly phone?: string | null;
      readonly level?: number;
      readonly team_id?: number | null;
      readonly manager_id?: number | null;
    }
  >(true);
  // The data form has the same types as what the builders make.
  const data = declare({ genres: { columns: { name: { type: 'text', max: 3, nullable: true } } } });
  same<Row<typeof data, 'genres'>, { readonly id: number; readonly name: string | null }>(true);
});

test('a new row lacks what Portico gives, and may lack what has a default', () => {
  same<NewRow<typeof config, 'authors'>, { readonly name: string; readonly born?: string | null }>(true);
  same<
    NewRow<typeof config, 'fines'>,
    {
      readonly id?: string;
      readonly reader: string;
      readonly book: number;
      readonly paid_by_id?: string | null;
    }
  >(true);
  same<NewRow<typeof config, 'genres'>, { readonly id?: number; readonly name: string }>(true);
  same<Patch<typeof config, 'authors'>, { readonly name?: string; readonly born?: string | null }>(true);
  const book: NewRow<typeof config, 'books'> = {
    title: 'Emma',
    pages: 474,
    price: '9.99',
    author_id: 1,
    copies: '1',
  };
  assert.equal(book.kind, undefined);
});

test('a row has its computed columns, and a new row has not', () => {
  const shop = declare({
    lines: {
      columns: {
        name: text({ max: 20 }),
        note: text({ max: 20, nullable: true }),
        price: decimal(8, 2),
        pieces: integer({ min: 0, max: 9 }),
      },
      computed: {
        label: concat('name', ' ', 'note'),
        whole: coalesce('note', lower('name')),
        total: multiply('price', 'pieces'),
        more: add('pieces', 1),
        size: length('name'),
      },
    },
  });
  type Line = Row<typeof shop, 'lines'>;
  same<Line['label'], string | null>(true);
  same<Line['whole'], string>(true);
  same<Line['total'], string>(true);
  same<Line['more'], number>(true);
  same<Line['size'], number>(true);
  const line: NewRow<typeof shop, 'lines'> = { name: 'Pen', price: '1.50', pieces: 2 };
  // @ts-expect-error No client writes it.
  const patch: Patch<typeof shop, 'lines'> = { total: '1.00' };
  assert.ok(line && patch);
});

test('mistakes are errors of the compiler', () => {
  // @ts-expect-error An unknown option.
  text({ mxa: 3 });
  // @ts-expect-error A bound of the wrong type.
  integer({ min: '1' });
  // @ts-expect-error A relation has columns.
  declare({ genres: { one: 'genre' } });
  // @ts-expect-error No such type.
  declare({ genres: { columns: { name: { type: 'txt' } } } });
  // @ts-expect-error No such relation.
  type None = Row<typeof config, 'lendings'>;
  // @ts-expect-error No such value.
  const row: Patch<typeof config, 'books'> = { kind: 'essay' };
  const none: None | undefined = undefined;
  assert.equal(none, undefined);
  assert.ok(row);
});
