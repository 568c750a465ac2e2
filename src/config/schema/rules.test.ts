import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readRelations } from './relations.ts';

function problemsOf(value: unknown): readonly string[] {
  const problems: string[] = [];
  readRelations({ value, path: 'c' }, problems);
  return problems;
}

const text = { type: 'text', max: 10 };
const authors = { columns: { name: text, data: { type: 'json', nullable: true } } };
const books = {
  title: text,
  owner: text,
  pages: { type: 'integer' },
  author: { type: 'reference', to: 'authors' },
};

test('rules in all forms are read, and an operation without a rule is refused', () => {
  const problems: string[] = [];
  const where = { author: { name: { caller: '/name' } } };
  const rules = { read: 'anyone', create: [{ scope: 'a' }, { where }, 'nobody'], delete: 'nobody' };
  const [, relation] = readRelations(
    { value: { authors, books: { columns: books, rules } }, path: 'c' },
    problems,
  );
  assert.deepEqual(problems, []);
  assert.deepEqual(relation?.rules, {
    read: ['anyone'],
    create: [{ scope: 'a' }, { where }],
    update: [],
    delete: [],
  });
});

test('all mistakes in the form of rules are told at once', () => {
  const columns = {
    ...books,
    a: { ...text, read: { where: {} } },
    b: { ...text, set: { caller: 'sub' } },
    c: { ...text, set: { caller: '/sub' }, write: 'nobody' },
    d: { ...text, readonly: true, immutable: true },
  };
  const rules = { raed: 'anyone', read: 'all', update: { scope: 'a b' }, delete: { scope: 'a', where: {} } };
  const rule = 'must be "anyone", "nobody", { scope }, { where }, or an array of these';
  assert.deepEqual(problemsOf({ authors, books: { columns, rules } }), [
    'c.books.columns.b.set.caller must be { caller } with a JSON pointer, such as { caller: "/sub" }',
    'c.books.columns.a.read takes "anyone", "nobody" and scopes; conditions go into rules',
    'c.books.columns.c.write does not go with set, which no client writes',
    'c.books.columns.d is readonly and immutable; keep one of them',
    'c.books.rules has an unknown key "raed"; did you mean read?',
    `c.books.rules.read "all" ${rule}`,
    `c.books.rules.update ${rule}`,
    `c.books.rules.delete ${rule}`,
  ]);
  const key = { id: { type: 'integer', read: { scope: 'a' } } };
  assert.deepEqual(problemsOf({ things: { columns: key } }), [
    'c.things.columns.id.read is not possible for a column of the key, which paths and links have',
  ]);
});

test('all mistakes in the conditions of rules are told at once, with proposals', () => {
  const read = {
    where: {
      authr: {},
      owner: { caller: 'sub' },
      or: [
        { author: { nmae: 'x' } },
        { title: { prefx: { caller: '/x' } } },
        { pages: { prefix: { caller: '/x' } } },
      ],
      not: { pages: 'many' },
      author: { data: { caller: '/x' }, books: { title: 'x' } },
    },
  };
  const rules = { read, update: { where: { title: { gt: {} } } } };
  assert.deepEqual(problemsOf({ authors, books: { columns: books, rules } }), [
    'c.books.rules.read names "authr", which books does not have; did you mean author?',
    'c.books.rules.read needs a JSON pointer such as "/sub" for caller, not "sub"',
    'c.books.rules.read names "nmae", which authors does not have; did you mean name?',
    'c.books.rules.read has no test "prefx" for a claim; did you mean prefix?',
    'c.books.rules.read takes prefix only for texts, not for "pages"',
    'c.books.rules.read compares "pages", which must be a whole number',
    'c.books.rules.read compares "data", which is JSON',
    'c.books.rules.read needs {"some": {...}}, "none" or "every" for "books", which may be several rows',
    'c.books.rules.update compares "title", which must be a text',
  ]);
});
