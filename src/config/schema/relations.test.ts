import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { declarations } from '../../../test/support/relations/random-declarations.ts';
import { readRelations } from './relations.ts';

function read(value: unknown) {
  const problems: string[] = [];
  const relations = readRelations({ value, path: 'c: relations' }, problems);
  return { relations: new Map(relations.map((relation) => [relation.name, relation])), problems };
}

/** The problems of relations, without the path that all have. */
function problemsOf(value: unknown): readonly string[] {
  const { relations, problems } = read(value);
  assert.equal(relations.size > 0, problems.length === 0);
  return problems.map((problem) => problem.replace(/^c: relations\./, ''));
}

/** The problems of one relation, without its path. */
function problemsIn(relation: unknown, others: object = {}): readonly string[] {
  return problemsOf({ ...others, things: relation }).map((problem) => problem.replace(/^things[. ]/, ''));
}

/** The problems of one column, without its path. */
function problemsAt(column: unknown): readonly string[] {
  return problemsIn({ columns: { a: column } }).map((problem) => problem.replace(/^columns\.a[. ]/, ''));
}

const text = { type: 'text', max: 20 };

test('the resolved form is complete', () => {
  const { relations, problems } = read({
    authors: { columns: { name: text } },
    categories: { table: 'kinds', columns: { id: text }, changes: false },
    books: {
      was: 'tomes',
      columns: {
        title: text,
        author: { type: 'reference', to: 'authors', unique: true, was: 'writer' },
        category: { type: 'reference', to: 'categories', inverse: 'works', nullable: true, onDelete: 'null' },
        price: { type: 'decimal', precision: 10, scale: 2, min: '0', default: 1.5, was: 'cost' },
        data: { type: 'json', default: [] },
        code: { type: 'text', max: 8, unique: true },
        at: { type: 'timestamp', default: 'now' },
        by: { type: 'text', max: 9, default: 'caller' },
        big: { type: 'bigint', min: '-5', max: 7 },
      },
      unique: [['title', 'author_id']],
      indexes: [['title', 'id']],
    },
  });
  assert.deepEqual(problems, []);
  const column = { nullable: false, default: undefined, was: undefined };
  const short = { kind: 'text', max: 20, fold: false };
  assert.deepEqual(relations.get('books'), {
    name: 'books',
    one: 'book',
    table: 'books',
    was: 'tomes',
    columns: [
      { ...column, name: 'id', type: { kind: 'serial', open: false } },
      { ...column, name: 'title', type: short },
      { ...column, name: 'author_id', type: { kind: 'integer' }, was: 'writer_id' },
      { ...column, name: 'category_id', type: short, nullable: true },
      {
        ...column,
        name: 'price',
        type: { kind: 'decimal', precision: 10, scale: 2, min: '0.00' },
        default: { kind: 'value', value: '1.50' },
        was: 'cost',
      },
      {
        ...column,
        name: 'data',
        type: { kind: 'json', maxBytes: 65_536 },
        default: { kind: 'value', value: '[]' },
      },
      { ...column, name: 'code', type: { kind: 'text', max: 8, fold: false } },
      { ...column, name: 'at', type: { kind: 'timestamp' }, default: { kind: 'now' } },
      { ...column, name: 'by', type: { kind: 'text', max: 9, fold: false }, default: { kind: 'caller' } },
      { ...column, name: 'big', type: { kind: 'bigint', min: -5n, max: 7n } },
    ],
    key: ['id'],
    unique: [['title', 'author_id'], ['code'], ['author_id']],
    indexes: [['title', 'id']],
    references: [
      {
        name: 'author',
        to: 'authors',
        columns: ['author_id'],
        targetColumns: ['id'],
        inverse: 'books',
        onDelete: 'restrict',
      },
      {
        name: 'category',
        to: 'categories',
        columns: ['category_id'],
        targetColumns: ['id'],
        inverse: 'works',
        onDelete: 'null',
      },
    ],
    inverses: [],
    many: [],
    changes: true,
  });
  assert.deepEqual(relations.get('authors')?.inverses, [
    { name: 'books', relation: 'books', reference: 'author' },
  ]);
  const { one, table, changes, columns } = relations.get('categories') ?? {};
  assert.deepEqual({ one, table, changes }, { one: 'category', table: 'kinds', changes: false });
  assert.deepEqual(columns, [{ ...column, name: 'id', type: short }]);
  assert.deepEqual(read(undefined), { relations: new Map(), problems: [] });
});

test('a composite key is a type for the columns that refer to it', () => {
  const { relations, problems } = read({
    books: { columns: { id: { type: 'uuid' } } },
    loans: {
      key: ['book_id', 'reader'],
      columns: { book: { type: 'reference', to: 'books', onDelete: 'cascade' }, reader: text },
    },
    fines: {
      columns: {
        loan: { type: 'reference', to: 'loans', columns: ['book', 'reader'] },
        reader: { type: 'text', max: 5 },
        first: { type: 'reference', to: 'fines', inverse: 'later', nullable: true },
      },
    },
  });
  assert.deepEqual(problems, []);
  assert.deepEqual(relations.get('books')?.columns[0]?.default, { kind: 'v7' });
  assert.deepEqual(
    relations.get('fines')?.columns.map(({ name, type, nullable }) => [name, type.kind, nullable]),
    [
      ['id', 'serial', false],
      ['book', 'uuid', false],
      ['reader', 'text', false],
      ['first_id', 'integer', true],
    ],
  );
  assert.deepEqual(relations.get('fines')?.references[0]?.targetColumns, ['book_id', 'reader']);
  assert.deepEqual(relations.get('fines')?.inverses, [
    { name: 'later', relation: 'fines', reference: 'first' },
  ]);
});

test('all problems come at once, each with its place and a guess', () => {
  assert.deepEqual(
    problemsOf({
      books: {
        colums: {},
        columns: {
          title: { type: 'txt', max: 3 },
          pages: { type: 'integer', mim: 1, min: 1.5 },
          name: { type: 'text', max: 0, nullable: 1 },
          author: { type: 'reference', to: 'autors' },
          shelf: [],
        },
        unique: [['titel'], ['author']],
      },
      authors: 7,
      loans: { key: 'id', columns: { reader: text } },
    }),
    [
      'books has an unknown key "colums"; did you mean columns?',
      `books.columns.title.type "txt" must be one of serial, integer, bigint, decimal, number, boolean, text, date, timestamp, uuid, enum, json, bytes, reference; did you mean text?`,
      'books.columns.pages has an unknown key "mim"; did you mean min?',
      'books.columns.pages.min must be a whole number that a double holds exactly',
      'books.columns.name.nullable must be true or false',
      'books.columns.name.max must be a whole number from 1 to 65536',
      'books.columns.shelf must be a column such as { type: "text", max: 200 }',
      'books.columns.author.to "autors" is not a relation; did you mean authors?',
      'authors must be an object with columns',
      'loans.key must be an array of columns',
    ],
  );
  assert.deepEqual(problemsOf([]), ['c: relations must be an object of relations by name']);
  const many = Array.from({ length: 201 }, (_, n) => [`r${n}s`, { columns: {} }]);
  assert.deepEqual(problemsOf(Object.fromEntries(many)), [
    'c: relations has 201 relations; at most 200 are possible',
  ]);
});

test('bounds are values of the type, the smaller one first', () => {
  assert.deepEqual(problemsAt({ type: 'integer', min: 2, max: 1 }), ['min must be at most max']);
  assert.deepEqual(problemsAt({ type: 'decimal', precision: 4, scale: 2, min: '10', max: '9.99' }), [
    'min must be at most max',
  ]);
  assert.deepEqual(problemsAt({ type: 'bigint', max: '9223372036854775808' }), [
    'max must be at most 9223372036854775807',
  ]);
  assert.deepEqual(problemsAt({ type: 'decimal', precision: 19, scale: 2 }), [
    'precision must be a whole number from 1 to 18',
  ]);
  assert.deepEqual(problemsAt({ type: 'decimal', precision: 3, scale: 4 }), [
    'scale must be at most the precision, 3',
  ]);
  assert.deepEqual(problemsAt({ type: 'decimal', precision: 3, scale: 2, min: '0.005' }), [
    'min must have at most 2 digits after the point',
  ]);
  assert.deepEqual(problemsAt({ type: 'number', max: Number.NaN }), ['max must be a number']);
  assert.equal(problemsAt({ type: 'enum', values: [] }).length, 1);
  assert.equal(problemsAt({ type: 'enum', values: ['a', 'a'] }).length, 1);
  assert.equal(problemsAt({ type: 'enum', values: ['a\0'] }).length, 1);
  assert.equal(problemsAt({ type: 'decimal' }).length, 2);
});

test('defaults are values of the column', () => {
  assert.deepEqual(problemsAt({ type: 'integer', min: 1, default: 0 }), ['default must be at least 1']);
  assert.deepEqual(problemsAt({ type: 'text', nullable: true, default: null }), [
    'default must not be null; leave it out',
  ]);
  assert.match(
    problemsAt({ type: 'uuid', default: 'v5' })[0] ?? '',
    /^default must be a UUID .*, or "v4", or "v7"$/,
  );
  assert.match(problemsAt({ type: 'date', default: 'today' })[0] ?? '', /, or "now"$/);
  assert.deepEqual(problemsAt({ type: 'text', default: 'now' }), []);
  assert.deepEqual(problemsAt({ type: 'enum', values: ['a'], default: 'b' }), ['default must be "a"']);
  assert.deepEqual(problemsAt({ type: 'serial' }), [
    'must be the only column of the key, because it is a serial',
  ]);
});

test('keys, unique constraints and indexes name columns that an index takes', () => {
  const columns = {
    a: text,
    b: { type: 'json' },
    c: { type: 'text', max: 400 },
    d: { type: 'text', max: 400, nullable: true },
  };
  assert.deepEqual(problemsIn({ columns, unique: [['e'], [], ['a', 'a'], ['b'], ['id'], ['a'], ['a']] }), [
    'unique[0] "e" is not a column; did you mean a?',
    'unique[1] must name a column',
    'unique[2] names a column twice',
    'unique[3] "b" is of type json, which no index takes',
    'unique[4] (id) is there already',
    'unique[6] (a) is there already',
  ]);
  assert.deepEqual(problemsIn({ columns, indexes: [['c', 'd']] }), [
    'indexes[0] takes up to 3200 bytes, 4 for each character; an index takes at most 2600, so lower max',
  ]);
  assert.deepEqual(problemsIn({ columns, key: ['a', 'd'] }), [
    'columns.d.nullable is not possible for a column of the key',
  ]);
  assert.deepEqual(problemsIn({ columns: { id: { ...text, fold: true } } }), [
    'columns.id.fold is not possible for a column of the key; make another column unique',
  ]);
  assert.deepEqual(problemsIn({ columns: { ...columns, n: { type: 'serial' } }, key: ['a', 'n'] }), [
    'columns.n must be the only column of the key, because it is a serial',
  ]);
  const other = { others: { columns: {} } };
  const o = { type: 'reference', to: 'others' };
  assert.deepEqual(problemsIn({ columns: { o }, indexes: [['o']] }, other), [
    'indexes[0] "o" is not a column; a reference has no value, but o_id',
  ]);
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`c${n}`, text]));
  assert.deepEqual(problemsIn({ columns: many }), ['columns has 201 columns; at most 200 are possible']);
});

test('references fit the key of their target, and each has an inverse of its own', () => {
  const others = {
    authors: { columns: { name: text, born: { type: 'date' } } },
    loans: { key: ['place', 'reader'], columns: { place: { type: 'integer' }, reader: text } },
  };
  const to = (to: string, more: object = {}) => ({ type: 'reference', to, ...more });
  assert.deepEqual(problemsIn({ columns: { a: to('authors'), b: to('authors') } }, others), [
    'columns.b and c: relations.things.columns.a both refer to authors; give each an inverse',
  ]);
  assert.deepEqual(
    problemsIn(
      { columns: { a: to('authors', { inverse: 'x' }), b: to('authors', { inverse: 'x' }) } },
      others,
    ),
    ['columns.b.inverse "x" is also that of c: relations.things.columns.a; rename one of them'],
  );
  assert.deepEqual(problemsIn({ columns: { a: to('authors', { inverse: 'name' }) } }, others), [
    'columns.a.inverse "name" is a column of authors; name another one',
  ]);
  assert.deepEqual(problemsIn({ columns: { loan: to('loans') } }, others), [
    'columns.loan needs columns, one for each of place, reader, because the key of loans has 2 columns',
  ]);
  assert.deepEqual(problemsIn({ columns: { loan: to('loans', { columns: ['x'] }) } }, others), [
    'columns.loan.columns must be 2 columns of this relation, one for each of place, reader of loans',
  ]);
  const declared = { loan: to('loans', { columns: ['place', 'reader'] }), place: text };
  assert.deepEqual(problemsIn({ columns: declared }, others), [
    'columns.loan needs place to have the type of loans.place',
  ]);
  assert.deepEqual(problemsIn({ columns: { a: to('authors'), a_id: { type: 'integer' } } }, others), [
    'columns.a makes the column a_id, which is declared too; write columns: ["a_id"]',
  ]);
  assert.deepEqual(problemsIn({ columns: { a: to('authors', { onDelete: 'null' }) } }, others), [
    'columns.a.onDelete "null" needs a_id to be nullable',
  ]);
  assert.deepEqual(problemsIn({ columns: { a: to('authors', { onDelete: 'set' }) } }, others), [
    'columns.a.onDelete must be one of restrict, cascade, null',
  ]);
  assert.deepEqual(problemsIn({ columns: { a: to('users') } }, others), []);
  assert.deepEqual(problemsIn({ columns: { a: to('user') } }, others), [
    'columns.a.to "user" is not a relation; did you mean users?',
  ]);
  assert.deepEqual(problemsIn({ columns: { a: to('users', { inverse: 'email' }) } }, others), [
    'columns.a.inverse "email" is a column of users; name another one',
  ]);
  const circle = {
    hens: { key: ['egg_id'], columns: { egg: to('eggs') } },
    eggs: { key: ['hen_id'], columns: { hen: to('hens') } },
  };
  assert.deepEqual(problemsOf(circle), ['hens.columns.egg refers to itself through keys, so it has no type']);
});

test('names that are taken are refused with the remedy', () => {
  const columns = { a: text };
  assert.deepEqual(
    problemsOf({
      update: { one: 'up', columns },
      jobs: { columns },
      _secrets: { columns },
      tasks: { table: 'targets', columns },
      sheep: { columns },
      glasses: { columns },
      news: { one: 'query', columns },
      books: { columns },
      tomes: { table: 'books', one: 'book', columns },
      Books: { one: 'bok', columns },
    }),
    [
      'sheep.one is missing: the singular of sheep',
      'update has the name of a path of Portico; rename it',
      `jobs has the name of a table or an index of Portico or its database; write table: 'jobs_of_mine'`,
      '_secrets must be a name of letters, digits and "_" that begins with a lower-case letter, at most 63',
      'tasks.table has the name of a table or an index of Portico or its database; name another one',
      'news.one "query" is taken by Portico; name another one',
      'tomes has the table "books", and so has c: relations.books; rename one of them',
      'tomes has the one "book", and so has c: relations.books; rename one of them',
      'Books must be a name of letters, digits and "_" that begins with a lower-case letter, at most 63',
      'Books has the name "Books", and so has c: relations.books; rename one of them',
    ],
  );
  assert.deepEqual(problemsOf({ jobs: { table: 'jobs_of_mine', columns } }), []);
  assert.deepEqual(problemsOf({ buses: { columns }, bus: { one: 'buse', columns } }), [
    'bus has the one "buse", and so has c: relations.buses; rename one of them',
  ]);
  assert.deepEqual(
    problemsIn({ columns: { limit: text, b: text, B: text, foo: text, fOO: text, 'a b': text } }),
    [
      'columns.limit has the name of a parameter or operator of lists; rename it',
      'columns.B must be a name of letters, digits and "_" that begins with a lower-case letter, at most 63',
      'columns["a b"] must be a name of letters, digits and "_" that begins with a lower-case letter, at most 63',
      'columns.B has the name "B", and so has c: relations.things.columns.b; rename one of them',
      'columns.fOO has the name "fOO", and so has c: relations.things.columns.foo; rename one of them',
    ],
  );
});

test('a rename names what is no more', () => {
  const columns = { a: text, b: { ...text, was: 'a' } };
  assert.deepEqual(problemsIn({ columns }), ['columns.b.was names a, which is still a column']);
  assert.deepEqual(problemsOf({ books: { was: 'tomes', columns: {} }, tomes: { columns: {} } }), [
    'books.was names tomes, which is still a table',
  ]);
  assert.deepEqual(problemsOf({ books: { was: 'x', columns: {} }, tomes: { was: 'x', columns: {} } }), [
    'tomes.was names x, and so does another relation',
  ]);
});

test('what no version can do yet is refused, never ignored', () => {
  const columns = { a: { ...text, computed: {} } };
  const later = 'is not supported by this version; remove it';
  assert.deepEqual(
    problemsIn({ columns, introspect: {} }),
    ['introspect', 'columns.a.computed'].map((key) => `${key} ${later}`),
  );
  assert.deepEqual(problemsOf('introspect'), ['c: relations must be an object of relations by name']);
});

test('what the builders make and what JSON says are the same relations', () => {
  fc.assert(
    fc.property(declarations, ({ data, relations }) => {
      const again = read(JSON.parse(JSON.stringify(data)));
      assert.deepEqual(again.problems, []);
      assert.deepEqual([...again.relations.values()], relations);
      for (const { key, references, columns, inverses } of relations) {
        const names = columns.map(({ name }) => name);
        assert.ok(
          [...key, ...references.flatMap((each) => each.columns)].every((name) => names.includes(name)),
        );
        for (const { relation, reference } of inverses) {
          assert.ok(again.relations.get(relation)?.references.some(({ name }) => name === reference));
        }
      }
    }),
  );
});
