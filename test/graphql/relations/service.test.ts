import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { ask, openDoor } from '../support/door.ts';
import { captureError } from '../support/relations-door.ts';

const RELATIONS = {
  authors: { columns: { name: { type: 'text', max: 40 } } },
  books: {
    columns: {
      title: { type: 'text', max: 40 },
      author: { type: 'reference', to: 'authors' },
      owner: { type: 'reference', to: 'users', nullable: true },
    },
  },
};

const moduleOf = (config: object) => `export default ${JSON.stringify(config)};`;

/** Tokens by the scopes that they have. */
const SCOPES: Readonly<Record<string, readonly string[]>> = {
  books: ['books:read'],
  library: ['books:read', 'authors:read'],
  all: ['*:read'],
  users: ['users:read'],
  writer: ['books:write', 'authors:write'],
  editor: ['books:write', 'books:read'],
};
const tokens = Object.fromEntries(
  Object.entries(SCOPES).map(([name, scopes]) => [name, { secret: `${name}-0123456789012345`, scopes }]),
);

/** What each token may do; the others are refused for the scope that they lack. */
const MAY: readonly (readonly [query: string, allowed: readonly string[]])[] = [
  ['{ books { title } }', ['books', 'library', 'all', 'editor']],
  ['{ books { __typename } }', ['books', 'library', 'all', 'editor']],
  ['{ books { ...B } } fragment B on Book { ... { author { name } } }', ['library', 'all']],
  ['{ booksConnection { edges { node { author { __typename } } } } }', ['library', 'all']],
  ['{ author(id: 1) { books { title } } }', ['library', 'all']],
  ['{ books { title } users { id } }', []],
  ['{ books { owner { id } } }', []],
  ['{ users { id } }', ['users']],
  ['{ __typename }', ['users']],
  ['mutation { createAuthor(data: { name: "A" }) { __typename } }', ['writer']],
  ['mutation { createAuthor(data: { name: "A" }) { name } }', []],
  ['mutation { createBook(data: { title: "B", author_id: 1 }) { id } }', ['editor']],
  ['mutation { createBook(data: { title: "B", author_id: 1 }) { author { name } } }', []],
  ['mutation { deleteBook(id: 99) }', ['writer', 'editor']],
];

describe('relations at the GraphQL door of a service', () => {
  test('are served besides users in memory, which stay as they are', async () => {
    await using door = await openDoor({ module: moduleOf({ relations: RELATIONS }) });
    const { body } = await ask(
      door.url,
      'mutation { a: createAuthor(data: { name: "Austen" }) { id } u: createUser(name: "n", email: "") { id } b: createBook(data: { title: "Emma", author_id: 1 }) { id title author { name } owner { id } } }',
    );
    assert.deepEqual(body, {
      data: {
        a: { id: '1' },
        u: { id: '3' },
        b: { id: '1', title: 'Emma', author: { name: 'Austen' }, owner: null },
      },
    });
    const { body: read } = await ask(
      door.url,
      '{ users { id } user(id: "3") { name } books { title } hello }',
    );
    assert.deepEqual(read.data, {
      users: ['1', '2', '3'].map((id) => ({ id })),
      user: { name: 'n' },
      books: [{ title: 'Emma' }],
      hello: 'Hello from Portico!',
    });
  });

  test('answer the documents of the guide', async () => {
    const guide = await readFile(join(import.meta.dirname, '../../../docs/RELATIONS.md'), 'utf8');
    const [, declaration = ''] = /```json\n(.*?)```/s.exec(guide) ?? [];
    const [, section = ''] = guide.split('\n## GraphQL\n');
    const documents = [...section.matchAll(/```graphql\n(.*?)```/gs)].map(([, document = '']) => document);
    assert.ok(documents.length >= 2);
    await using door = await openDoor({ module: `export default ${declaration}` });
    await ask(
      door.url,
      'mutation { createAuthor(data: { name: "Austen" }) { id } createBook(data: { title: "Emma", author_id: 1 }) { id } }',
    );
    for (const query of documents) {
      const { body } = await ask(door.url, { query, variables: { authors: { name: { prefix: 'A' } } } });
      assert.equal(body.errors, undefined, JSON.stringify(body.errors));
    }
  });

  test('need the scopes of the relations that an operation reaches', async () => {
    await using door = await openDoor({
      module: moduleOf({ relations: RELATIONS, api: { required: 'all', tokens } }),
    });
    for (const [query, allowed] of MAY) {
      for (const name of Object.keys(SCOPES)) {
        const headers = { authorization: `Bearer ${name}-0123456789012345` };
        const { status, headers: received, text } = await ask(door.url, query, headers);
        const isAllowed = allowed.includes(name);
        assert.equal(status, isAllowed ? 200 : 403, `${name} ${query} ${text}`);
        if (isAllowed) continue;
        assert.match(
          received.get('www-authenticate') ?? '',
          /error="insufficient_scope", scope="\w+:(?:read|write)"/,
        );
      }
      assert.equal((await ask(door.url, query)).status, 401, query);
    }
  });

  test('follow the rules of relations', async () => {
    const rules = {
      read: { where: { owner: { caller: '/sub' } } },
      create: { where: { owner: { caller: '/sub' } } },
    };
    const notes = {
      columns: {
        text: { type: 'text', max: 40 },
        owner: { type: 'text', max: 40, set: { caller: '/sub' } },
        cost: { type: 'integer', nullable: true, read: { scope: 'staff' } },
      },
      indexes: [['owner']],
      rules,
    };
    const callers = Object.fromEntries(
      ['ann', 'bob'].map((name) => [name, { secret: `${name}-0123456789012345`, scopes: ['notes:read'] }]),
    );
    await using door = await openDoor({
      module: moduleOf({ relations: { notes }, api: { tokens: callers } }),
    });
    const as = (name: string) => ({ authorization: `Bearer ${name}-0123456789012345` });
    for (const name of ['ann', 'bob']) {
      const { body } = await ask(
        door.url,
        `mutation { createNote(data: { text: "of ${name}" }) { owner } }`,
        as(name),
      );
      assert.deepEqual(body, { data: { createNote: { owner: name } } });
    }
    for (const name of ['bob', 'ann', 'bob']) {
      const { body } = await ask(door.url, '{ notes { text } }', as(name));
      assert.deepEqual(body, { data: { notes: [{ text: `of ${name}` }] } });
      const { body: refused } = await ask(door.url, '{ notes { cost } }', as(name));
      assert.deepEqual(refused.errors?.[0]?.extensions?.code, 'NOT_ALLOWED');
    }
    // A condition without its claim shows nothing, so that nothing could be read.
    assert.equal((await ask(door.url, '{ notes { text } }')).status, 401);
    const sdl = await ask(door.url, '{ __type(name: "NoteCreate") { inputFields { name } } }');
    assert.deepEqual(sdl.body.data, {
      __type: { inputFields: [{ name: 'text' }, { name: 'cost' }] },
    });
  });

  test('are written in one transaction, or in one for each field', async () => {
    const query = 'mutation { a: createAuthor(data: { name: "A" }) { id } deleteBook(id: 9) }';
    for (const [mutations, stored] of Object.entries({ together: 0, single: 1 })) {
      const config = { relations: RELATIONS, limits: { graphql: { mutations } } };
      await using door = await openDoor({ module: moduleOf(config) });
      assert.equal((await ask(door.url, query)).body.errors?.[0]?.extensions?.code, 'NOT_FOUND');
      const { body } = await ask(door.url, '{ authors { name } }');
      assert.deepEqual(body.data, { authors: Array.from({ length: stored }, () => ({ name: 'A' })) });
    }
  });

  test('are created within other rows by those who may write both', async () => {
    await using door = await openDoor({
      module: moduleOf({ relations: RELATIONS, api: { required: 'all', tokens } }),
    });
    const query = 'mutation { createBook(data: { title: "B", author: { name: "A" } }) { __typename } }';
    const created = async (token: string) => {
      const headers = { authorization: `Bearer ${token}-0123456789012345` };
      const { body } = await ask(door.url, query, headers);
      return body.errors === undefined ? body.data : body.errors.map(({ extensions }) => extensions?.code);
    };
    assert.deepEqual(await created('editor'), ['LACKS_SCOPE']);
    assert.deepEqual(await created('writer'), { createBook: { __typename: 'Book' } });
  });

  test('do not start with names that GraphQL has already', async () => {
    const columns = { name: { type: 'text', max: 4 } };
    const config = {
      relations: {
        books: { columns },
        wheres: { one: 'bookWhere', columns },
        pages: { one: 'pageInfo', columns },
        greetings: { one: 'hello', columns },
      },
    };
    const problems = await captureError(openDoor({ module: moduleOf(config) }));
    assert.deepEqual(
      [...problems.matchAll(/relations\.(\w+) makes "(\w+)" in GraphQL, which ([\w.]+) has/g)].map(
        ([, ...found]) => found,
      ),
      [
        ['wheres', 'BookWhere', 'relations.books'],
        ['pages', 'PageInfo', 'Portico'],
        ['greetings', 'hello', 'Portico'],
      ],
    );
  });
});
