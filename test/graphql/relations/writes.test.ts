import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { graphqlRelationDoors, library } from '../support/relations-door.ts';

for (const [engine, open] of Object.entries(graphqlRelationDoors)) {
  describe(`mutations of relations on ${engine}`, () => {
    test('all of an operation are one transaction', async () => {
      await using door = await open(library);
      await door.data('mutation { createAuthor(data: { name: "Austen" }) { id } }');
      const error = await door.error(`mutation {
        a: createAuthor(data: { name: "Shelley" }) { id }
        b: createBooks(data: [{ title: "Emma", author_id: 1 }, { title: "Emma", author_id: 1 }]) { id }
        c: createAuthor(data: { name: "Bronte" }) { id }
      }`);
      assert.deepEqual(error, {
        message: 'another row has the same author_id and title',
        locations: [{ line: 3, column: 9 }],
        path: ['b'],
        extensions: {
          code: 'TAKEN',
          errors: ['author_id', 'title'].map((name) => ({
            detail: 'another row has the same author_id and title',
            pointer: `#/1/${name}`,
          })),
        },
      });
      assert.deepEqual(await door.data('{ authors { name } books { id } }'), {
        authors: [{ name: 'Austen' }],
        books: [],
      });
      const { body } = await door.ask(`mutation {
        a: upsertAuthor(data: { name: "Austen" }, on: name) { name books { title } }
        b: createBook(data: { title: "Emma", author_id: 1 }) { title author { name books { title } } loans { reader } }
        c: updateAuthor(id: 1, data: { born: "1775-12-16" }) { born name }
      }`);
      // What is selected of other rows is read after the commit.
      assert.equal(
        JSON.stringify(body),
        JSON.stringify({
          data: {
            a: { name: 'Austen', books: [{ title: 'Emma' }] },
            b: {
              title: 'Emma',
              author: { name: 'Austen', books: [{ title: 'Emma' }] },
              loans: [],
            },
            c: { born: '1775-12-16', name: 'Austen' },
          },
        }),
      );
    });

    test('each is a transaction of its own where the configuration says so', async () => {
      await using door = await open(library, { mutations: 'single' });
      const { body } = await door.ask(`mutation {
        a: createAuthor(data: { name: "Austen" }) { id books { title } }
        b: createBook(data: { title: "Emma", author_id: 1, loans: [{ reader: "ann" }] }) { title loans { reader } author { books { title } } }
        c: createBook(data: { title: "Persuasion", author_id: 1 }) { title }
        d: deleteBook(id: 2)
      }`);
      // Each sees what those before it have stored, and nothing of the later ones.
      assert.deepEqual(body.data, {
        a: { id: '1', books: [] },
        b: { title: 'Emma', loans: [{ reader: 'ann' }], author: { books: [{ title: 'Emma' }] } },
        c: { title: 'Persuasion' },
        d: true,
      });
      const error = await door.error(`mutation {
        a: createAuthor(data: { name: "Bronte" }) { id }
        b: createBooks(data: [{ title: "Poems", author_id: 1 }, { title: "Emma", author_id: 1 }]) { id }
        c: createAuthor(data: { name: "Shelley" }) { id }
      }`);
      assert.deepEqual([error.path, error.extensions?.code], [['b'], 'TAKEN']);
      // As in GraphQL.js: what was done before stays, and what comes behind is not begun.
      assert.deepEqual(await door.data('{ authors { name } books { title } }'), {
        authors: [{ name: 'Austen' }, { name: 'Bronte' }],
        books: [{ title: 'Emma' }],
      });
    });

    test('upserts, versions and removals', async () => {
      await using door = await open(library);
      await door.data('mutation { createAuthor(data: { name: "Austen" }) { id } }');
      const upsert = (data: string) =>
        door.data(
          `mutation { b: upsertBook(data: ${data}, on: author_id_and_title) { id price kind _version } }`,
        );
      const { b: created } = await upsert('{ title: "Emma", author_id: 1, price: "1" }');
      const { b: changed } = await upsert('{ title: "Emma", author_id: 1, kind: poem }');
      assert.deepEqual([created.id, created.price, created.kind], ['1', '1.00', 'novel']);
      assert.deepEqual([changed.id, changed.price, changed.kind], ['1', '1.00', 'poem']);
      assert.ok(changed._version > created._version);
      const stale = await door.error(
        `mutation { updateBook(id: 1, data: { price: 2 }, ifVersion: ${created._version}) { id } }`,
      );
      assert.equal(stale.extensions?.code, 'PRECONDITION_FAILED');
      const { b: fresh } = await door.data(
        `mutation { b: updateBook(id: 1, data: { price: 2 }, ifVersion: ${changed._version}) { price _version } }`,
      );
      assert.equal(fresh.price, '2.00');
      assert.deepEqual(await door.data('{ book(id: 1) { _version } }'), {
        book: { _version: fresh._version },
      });
      const referenced = await door.error('mutation { deleteAuthor(id: 1) }');
      assert.deepEqual(
        [referenced.extensions?.code, referenced.message],
        ['REFERENCED', 'rows of books refer to this row'],
      );
      const missing = await door.error('mutation { deleteBook(id: 9) }');
      assert.deepEqual(
        [missing.extensions?.code, missing.message],
        ['NOT_FOUND', 'books has no row with this key'],
      );
      assert.deepEqual(await door.data('mutation { deleteBook(id: 1) deleteAuthor(id: 1) }'), {
        deleteBook: true,
        deleteAuthor: true,
      });
    });

    test('faults are listed with their places', async () => {
      await using door = await open(library);
      const invalid = await door.error(`mutation {
        createBooks(data: [{ title: "", author_id: 1, price: "-1", pages: 0 }, { title: "x", author_id: 1 }]) { id }
      }`);
      assert.deepEqual(invalid.extensions?.code, 'INVALID_ROW');
      const { errors } = invalid.extensions as { readonly errors: readonly { readonly pointer: string }[] };
      assert.deepEqual(
        errors.map(({ pointer }) => pointer),
        ['#/0/price', '#/0/pages'],
      );
      const reference = await door.error(
        'mutation { createBook(data: { title: "x", author_id: 7 }) { id } }',
      );
      assert.deepEqual(reference.extensions, {
        code: 'REFERENCE_MISSING',
        errors: [{ detail: 'authors has no row with this key (author_id)', pointer: '#/author_id' }],
      });
      const type = await door.error(
        'mutation { createBook(data: { title: "x", author_id: 7, kind: play }) { id } }',
      );
      assert.match(type.message, /Value "play" does not exist in "BookKind" enum/);
    });

    test('without a version nothing changes where one is needed', async () => {
      await using door = await open(library, { requireIfMatch: true });
      await door.data('mutation { createAuthor(data: { name: "Austen" }) { id } }');
      const error = await door.error('mutation { updateAuthor(id: 1, data: { name: "A" }) { id } }');
      assert.equal(error.extensions?.code, 'PRECONDITION_REQUIRED');
      const many = await door.error({
        query: 'mutation ($data: [AuthorCreate!]!) { createAuthors(data: $data) { id } }',
        variables: { data: Array.from({ length: 1_001 }, (_, i) => ({ name: `n${i}` })) },
      });
      assert.deepEqual([many.extensions?.code, many.extensions?.limit], ['LIMIT_EXCEEDED', 'rows']);
    });
  });
}
