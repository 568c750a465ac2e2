import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  caller,
  integer,
  type Json,
  json,
  reference,
  scope,
  text,
  where,
} from '../../../src/config/schema/declaration.ts';
import { defineConfig } from '../../../src/define-config.ts';
import type { GraphqlContext } from '../../../src/graphql/config.ts';
import { ask, openDoor } from '../support/door.ts';

/** Whether two types are the same, `readonly` and `?` included. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_isSame: Same<A, B>) => {};

type Book = {
  readonly id: number;
  readonly title: string;
  readonly pages: number | null;
  readonly author_id: number;
  readonly tags: Json;
};

const relations = {
  authors: { columns: { name: text({ max: 40 }) } },
  books: {
    columns: {
      title: text({ max: 40 }),
      pages: integer({ nullable: true }),
      author: reference('authors'),
      tags: json({ default: [] }),
    },
    rules: { read: where({ author: { name: caller('/sub') } }), create: scope('editor') },
  },
  loans: {
    key: ['book_id', 'reader'],
    columns: { book: reference('books'), reader: text({ max: 20 }) },
  },
} as const;

/** Compiled, and not run: what resolvers get. */
export const typed = () =>
  defineConfig({
    relations,
    graphql: {
      typeDefs: 'extend type Query { longest: Int }',
      resolvers: {
        Query: {
          async longest(_parent, _given, { relations: { books, loans } }) {
            const { rows, next } = await books.list({
              where: { pages: { gt: 1 } },
              sort: '-pages',
              limit: 1,
            });
            same<typeof rows, readonly Book[]>(true);
            same<typeof next, string | undefined>(true);
            same<Parameters<typeof books.get>, [key: number | string]>(true);
            same<Parameters<typeof loans.get>, [key: { readonly book_id: number; readonly reader: string }]>(
              true,
            );
            const loan = await loans.get({ book_id: 1, reader: 'ann' });
            same<typeof loan, { readonly book_id: number; readonly reader: string } | undefined>(true);
            const book = await books.create({ title: 'Emma', author_id: 1 });
            same<typeof book, Book | undefined>(true);
            await books.update('1', { pages: null });
            // @ts-expect-error No such column.
            await books.update(1, { page: 1 });
            // @ts-expect-error A column is missing.
            await books.create({ title: 'Emma' });
            // @ts-expect-error A key of two columns.
            await loans.remove(1);
            return rows[0]?.pages;
          },
        },
      },
    },
  });

/** The same where the context is named. */
export const named = async ({ relations: { authors } }: GraphqlContext<typeof relations>) => {
  same<ReturnType<typeof authors.count>, Promise<number>>(true);
  // @ts-expect-error No such relation.
  ({ relations: { others } }: GraphqlContext<typeof relations>) => others;
};

const SECRETS = ['ann', 'bob', 'eve'].map((name) => [name, `${name}-0123456789012345`] as const);

/** A module whose resolvers run a step of a store that an operation names. */
const moduleOf = (rules: object, scopes: Readonly<Record<string, readonly string[]>>, required = 'none') => `
export default {
  api: { required: ${JSON.stringify(required)}, scopes: 'editor', tokens: ${JSON.stringify(
    Object.fromEntries(SECRETS.map(([name, secret]) => [name, { secret, scopes: scopes[name] ?? [] }])),
  )} },
  relations: {
    authors: { columns: { name: { type: 'text', max: 40 } } },
    books: {
      columns: {
        title: { type: 'text', max: 40 },
        pages: { type: 'integer', nullable: true, ${required === 'none' ? "read: { scope: 'editor' }" : ''} },
        author: { type: 'reference', to: 'authors' },
      },
      indexes: [['title']],
      ${JSON.stringify(rules).slice(1, -1)}
    },
    loans: { key: ['book_id', 'reader'], columns: { book: { type: 'reference', to: 'books' }, reader: { type: 'text', max: 20 } } },
  },
  graphql: {
    typeDefs: 'scalar Any extend type Query { run(on: String!, step: String!, given: Any): Any } extend type Book { own: Any }',
    resolvers: {
      Book: { own: (row) => Object.keys(row).join() },
      Query: {
        async run(_parent, { on, step, given = [] }, { relations }) {
          return { value: await relations[on][step](...given) };
        },
      },
    },
  },
};`;

async function opened(module: string) {
  const door = await openDoor({ module });
  const headersOf = (name: string): Readonly<Record<string, string>> => {
    const secret = SECRETS.find(([each]) => each === name)?.[1];
    return secret === undefined ? {} : { authorization: `Bearer ${secret}` };
  };
  return {
    ask: (name: string, query: string) => ask(door.url, query, headersOf(name)),
    async run(name: string, on: string, step: string, ...given: readonly unknown[]) {
      const { body, text } = await ask(
        door.url,
        {
          query:
            'query ($on: String!, $step: String!, $given: Any) { run(on: $on, step: $step, given: $given) }',
          variables: { on, step, given },
        },
        headersOf(name),
      );
      const [error] = body.errors ?? [];
      if (error !== undefined)
        return { code: error.extensions?.code, errors: error.extensions?.errors, text };
      // biome-ignore lint/suspicious/noExplicitAny: tests look at members of all shapes
      return (body.data as { readonly run: { readonly value?: any } }).run.value;
    },
    [Symbol.asyncDispose]: () => door[Symbol.asyncDispose](),
  };
}

describe('the rows of relations in the context of resolvers', () => {
  test('are read and written, as the caller may', async () => {
    const rules = {
      rules: {
        read: [{ scope: 'editor' }, { where: { author: { name: { caller: '/sub' } } } }],
        create: { scope: 'editor' },
        update: [{ scope: 'editor' }, { where: { author: { name: { caller: '/sub' } } } }],
        delete: { where: { author: { name: { caller: '/sub' } } } },
      },
    };
    await using code = await opened(moduleOf(rules, { eve: ['editor'] }));
    const { run } = code;
    for (const name of ['ann', 'bob']) await run('eve', 'authors', 'create', { name });
    const book = (title: string, author_id: number, pages = 9) => ({ title, author_id, pages });
    assert.deepEqual(await run('eve', 'books', 'create', book('a1', 1)), { id: 1, ...book('a1', 1) });
    for (const [title, author] of [
      ['a2', 1],
      ['b1', 2],
      ['a3', 1],
    ] as const)
      await run('eve', 'books', 'create', book(title, author));
    // Columns that the caller may not read are not there, and rows are none.
    for (const _ of [1, 2]) {
      assert.deepEqual(await run('ann', 'books', 'get', 1), { id: 1, title: 'a1', author_id: 1 });
      assert.equal(await run('bob', 'books', 'get', '1'), undefined);
      assert.equal(await run('', 'books', 'count').then(({ code: refused }) => refused), 'NOT_ALLOWED');
      assert.equal(await run('ann', 'books', 'count'), 3);
      assert.equal(await run('eve', 'books', 'count', { author: { name: 'ann' } }), 3);
      assert.equal(await run('bob', 'books', 'count', { author: { name: 'ann' } }), 0);
      const titlesOf = async (name: string, after?: string): Promise<readonly string[]> => {
        const { rows, next } = await run(name, 'books', 'list', { sort: '-title', limit: 2, after });
        const titles = rows.map(({ title }: { title: string }) => title);
        return next === undefined ? titles : [...titles, ...(await titlesOf(name, next))];
      };
      assert.deepEqual(await titlesOf('ann'), ['a3', 'a2', 'a1']);
      assert.deepEqual(await titlesOf('eve'), ['b1', 'a3', 'a2', 'a1']);
      assert.deepEqual(await titlesOf('bob'), ['b1']);
      assert.equal((await run('ann', 'books', 'list', { where: { pages: 9 } })).code, 'NOT_ALLOWED');
      assert.equal((await run('ann', 'books', 'list', { sort: 'pages' })).code, 'NOT_ALLOWED');
      assert.equal((await run('eve', 'books', 'list', { sort: 'pages' })).rows.length, 4);
    }
    assert.equal((await run('ann', 'books', 'create', book('x', 1))).code, 'NOT_ALLOWED');
    assert.equal((await run('ann', 'books', 'update', 3, { title: 'x' })).code, 'NOT_FOUND');
    // An update must not give a row away.
    assert.equal((await run('ann', 'books', 'update', 1, { author_id: 2 })).code, 'NOT_ALLOWED');
    assert.deepEqual(await run('ann', 'books', 'update', '1', { title: 'a9' }), {
      id: 1,
      title: 'a9',
      author_id: 1,
    });
    assert.equal(await run('ann', 'books', 'remove', 3), false);
    assert.equal((await run('eve', 'books', 'remove', 3)).code, 'NOT_ALLOWED');
    assert.equal(await run('ann', 'books', 'remove', 1), true);
    assert.equal(await run('ann', 'books', 'remove', 1), false);
    const { code: invalid, errors } = await run('eve', 'books', 'create', { title: 1, author_id: 1 });
    assert.deepEqual([invalid, errors[0].pointer], ['INVALID_ROW', '#/title']);
    assert.equal((await run('eve', 'books', 'create', book('x', 99))).code, 'REFERENCE_MISSING');
    assert.equal((await run('eve', 'books', 'list', { where: { nothing: 1 } })).code, 'INVALID_PARAMETER');
    assert.equal((await run('eve', 'books', 'list', { limit: 5_000 })).code, 'INVALID_PARAMETER');
    assert.equal((await run('eve', 'books', 'list', { after: 'x' })).code, 'INVALID_CURSOR');
    assert.deepEqual(await run('eve', 'loans', 'create', { book_id: 2, reader: 'r' }), {
      book_id: 2,
      reader: 'r',
    });
    assert.deepEqual(await run('eve', 'loans', 'get', { book_id: 2, reader: 'r' }), {
      book_id: 2,
      reader: 'r',
    });
    assert.equal((await run('ann', 'books', 'remove', 2)).code, 'REFERENCED');
    // A field of the module's gets the columns that the caller may read, whatever the row comes from.
    const own = async (name: string, query: string) => (await code.ask(name, query)).body.data;
    assert.deepEqual(await own('ann', '{ book(id: 2) { own } author(id: 1) { books(limit: 1) { own } } }'), {
      book: { own: 'id,title,author_id,_version' },
      author: { books: [{ own: 'id,title,author_id,_version' }] },
    });
    assert.deepEqual(await own('ann', 'mutation { updateBook(id: 2, data: { title: "t" }) { own } }'), {
      updateBook: { own: 'id,title,author_id,_version' },
    });
    assert.deepEqual(await own('eve', '{ book(id: 2) { own } }'), {
      book: { own: 'id,title,pages,author_id,_version' },
    });
  });

  test('need the scopes of their relation without rules', async () => {
    const scopes = { ann: ['users:read', 'authors:read'], eve: ['users:read', '*:read', '*:write'] };
    await using code = await opened(moduleOf({}, scopes, 'all'));
    const { run } = code;
    assert.deepEqual(await run('eve', 'authors', 'create', { name: 'x' }), { id: 1, name: 'x' });
    assert.deepEqual(await run('ann', 'authors', 'get', 1), { id: 1, name: 'x' });
    assert.equal((await run('ann', 'authors', 'create', { name: 'y' })).code, 'NOT_ALLOWED');
    assert.equal((await run('ann', 'books', 'list')).code, 'NOT_ALLOWED');
    assert.deepEqual(await run('eve', 'books', 'list'), { rows: [] });
  });

  test('are there in a context of a function too, and only with relations', async () => {
    const keys = (context: string) => `export default {
      ${context}
      graphql: {
        typeDefs: 'extend type Query { has: Boolean }',
        context: (_request, { relations }) => ({ relations }),
        resolvers: { Query: { has: async (_parent, _given, { relations }) => relations && (await relations.books.count()) === 0 } },
      },
    };`;
    await using withRelations = await openDoor({
      module: keys("relations: { books: { columns: { title: { type: 'text' } } } },"),
    });
    assert.deepEqual((await ask(withRelations.url, '{ has }')).body.data, { has: true });
    await using without = await openDoor({ module: keys('') });
    assert.deepEqual((await ask(without.url, '{ has }')).body.data, { has: null });
  });
});
