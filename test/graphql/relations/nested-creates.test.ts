import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { graphqlRelationDoors, library, type RelationsDoor } from '../support/relations-door.ts';

/** The code of a refusal and the pointers to its faults. */
async function refused(door: RelationsDoor, query: string, variables?: Readonly<Record<string, unknown>>) {
  const { extensions: { code, errors = [] } = {}, path } = await door.error(
    variables === undefined ? query : { query, variables },
  );
  const pointers = (errors as readonly { readonly pointer: string }[]).map(({ pointer }) => pointer);
  return [path?.[0], code, ...pointers];
}

for (const [engine, open] of Object.entries(graphqlRelationDoors)) {
  describe(`rows of other relations within new ones on ${engine}`, () => {
    test('are stored with them, in the transaction of the operation', async () => {
      await using door = await open(library);
      const { body } = await door.ask({
        query: `mutation ($books: [BookCreate!]) {
          first: createAuthor(data: { name: "Shelley" }) { id }
          book: createBook(data: {
            title: "Emma", author: { name: "Austen", books: [{ title: "Persuasion", loans: [{ reader: "bob" }] }] }
            loans: [{ reader: "ann" }, { reader: "cid", big: 9223372036854775807 }]
          }) { title author { name books(orderBy: { title: ASC }) { title loans { reader } } } loans { reader big } }
          upsertAuthor(data: { name: "Shelley", born: "1797-08-30" }, on: name) { born }
          more: createAuthors(data: [{ name: "Bronte", books: $books }, { name: "Eliot" }]) { name books { title } }
          loan: createLoan(data: { reader: "dan", book: { title: "Poems", author_id: 1 } }) { book { title author { name } } }
          last: createBook(data: { title: "Valperga", author_id: 1, loans: [] }) { title loans { reader } }
        }`,
        variables: { books: [{ title: 'Villette', price: '3' }, { title: 'Shirley' }] },
      });
      assert.deepEqual(body, {
        data: {
          first: { id: '1' },
          book: {
            title: 'Emma',
            author: {
              name: 'Austen',
              books: [
                { title: 'Emma', loans: [{ reader: 'ann' }, { reader: 'cid' }] },
                { title: 'Persuasion', loans: [{ reader: 'bob' }] },
              ],
            },
            loans: [
              { reader: 'ann', big: null },
              { reader: 'cid', big: '9223372036854775807' },
            ],
          },
          upsertAuthor: { born: '1797-08-30' },
          more: [
            { name: 'Bronte', books: [{ title: 'Villette' }, { title: 'Shirley' }] },
            { name: 'Eliot', books: [] },
          ],
          loan: { book: { title: 'Poems', author: { name: 'Shelley' } } },
          last: { title: 'Valperga', loans: [] },
        },
      });
    });

    test('a fault is pointed to, and nothing is stored', async () => {
      await using door = await open(library);
      assert.deepEqual(
        await refused(
          door,
          `mutation { createAuthor(data: { name: "A" }) { id }
            createBook(data: { title: "T", author: { name: "B" }, loans: [{ reader: "x" }, { reader: "twenty-one characters" }] }) { id } }`,
        ),
        ['createBook', 'INVALID_ROW', '#/loans/1/reader'],
      );
      assert.deepEqual(
        await refused(
          door,
          `mutation { a: createAuthor(data: { name: "A", books: [{ title: "x" }] }) { id }
            b: createAuthors(data: [{ name: "B" }, { name: "C", books: [{ title: "x" }, { title: "y", loans: [{ reader: "r" }, { reader: "r" }] }] }]) { id }
            c: createAuthor(data: { name: "D" }) { id } }`,
        ),
        ['b', 'TAKEN', '#/1/books/1/loans/1/book_id', '#/1/books/1/loans/1/reader'],
      );
      assert.deepEqual(
        await refused(
          door,
          'mutation { createAuthor(data: { name: "A", books: [{ title: "x", owner_id: 7 }] }) { id } }',
        ),
        ['createAuthor', 'REFERENCE_MISSING', '#/books/0/owner_id'],
      );
      const both =
        'mutation { createBook(data: { title: "T", author: { name: "B" }, author_id: 1 }) { id } }';
      assert.deepEqual(await refused(door, both), ['createBook', 'INVALID_ROW', '#/author_id']);
      const neither = 'mutation { createBook(data: { title: "T" }) { id } }';
      assert.deepEqual(await refused(door, neither), ['createBook', 'INVALID_ROW', '#/author_id']);
      const empty = 'mutation { createBook(data: { title: "T", author: null }) { id } }';
      assert.deepEqual(await refused(door, empty), ['createBook', 'INVALID_ROW', '#/author_id']);
      const around =
        'mutation { createAuthor(data: { name: "A", books: [{ title: "T", author_id: 1 }] }) { id } }';
      assert.deepEqual(await refused(door, around), ['createAuthor', 'INVALID_ROW', '#/books/0/author_id']);
      assert.deepEqual(await door.data('{ authors { name } books { title } loans { reader } }'), {
        authors: [],
        books: [],
        loans: [],
      });
    });

    test('have limits, which refusals name', async () => {
      await using door = await open(library);
      const create = 'mutation ($data: AuthorCreate!) { createAuthor(data: $data) { books { title } } }';
      const books = Array.from({ length: 1_000 }, (_, i) => ({ title: `t${i}` }));
      assert.deepEqual(await refused(door, create, { data: { name: 'A', books } }), [
        'createAuthor',
        'LIMIT_EXCEEDED',
        '#/books/999',
      ]);
      const { createAuthor } = await door.data({
        query: create,
        variables: { data: { name: 'A', books: books.slice(1) } },
      });
      assert.equal(createAuthor.books.length, 999);
      const deep = { author: { name: 'B', books: [{ title: 'x', loans: [{ reader: 'r' }] }] } };
      const loan = 'mutation ($data: LoanCreate!) { createLoan(data: $data) { reader } }';
      const tooDeep = { reader: 'a', book: { title: 'y', ...deep } };
      assert.deepEqual(await refused(door, loan, { data: tooDeep }), [
        'createLoan',
        'LIMIT_EXCEEDED',
        '#/book/author/books/0/loans/0',
      ]);
      const upsert = await door.error(
        'mutation { upsertBook(data: { title: "T", author_id: 1, author: { name: "B" } }, on: id) { id } }',
      );
      assert.match(upsert.message, /"BookUpsert" not to include unknown field "author"/);
      const user = await door.error(
        'mutation { createBook(data: { title: "T", author_id: 1, owner: { name: "n" } }) { id } }',
      );
      assert.match(user.message, /"BookCreate" not to include unknown field "owner"/);
    });
  });
}
