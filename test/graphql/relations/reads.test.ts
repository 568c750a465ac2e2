import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ownSchema } from '../../../src/graphql/own-schema.ts';
import { graphqlRelationDoors, library, type RelationsDoor } from '../support/relations-door.ts';

const FILL = `mutation {
  a: createAuthor(data: { name: "Austen", born: "1775-12-16" }) { id }
  b: createAuthor(data: { name: "Bronte" }) { id }
  createBooks(data: [
    { title: "Emma", price: 12.5, author_id: 1, pages: 400, data: { a: [1, "x"] }, owner_id: 1 }
    { title: "Persuasion", author_id: 1, kind: poem }
    { title: "Poems", author_id: 2, kind: poem, price: "3" }
  ]) { id }
  createLoans(data: [
    { book_id: 1, reader: "ann", big: 9223372036854775807, at: "2024-01-02T03:04:05+01:00", raw: "AAE=" }
    { book_id: 1, reader: "bob", code: "00000000-0000-4000-8000-00000000000A" }
  ]) { reader }
}`;

async function filled(door: RelationsDoor): Promise<RelationsDoor> {
  await door.database.users.create({ name: 'Ada', email: 'ada@example.org' });
  assert.deepEqual(await door.data(FILL), {
    a: { id: '1' },
    b: { id: '2' },
    createBooks: [{ id: '1' }, { id: '2' }, { id: '3' }],
    createLoans: [{ reader: 'ann' }, { reader: 'bob' }],
  });
  return door;
}

for (const [engine, open] of Object.entries(graphqlRelationDoors)) {
  describe(`queries of relations on ${engine}`, () => {
    test('lists, rows by their keys, and rows within them', async () => {
      await using door = await filled(await open(library));
      const { body } = await door.ask(`{
        books(where: { author: { name: { prefix: "A" } } }, orderBy: [{ author: { name: DESC } }, { title: DESC }], limit: 1) {
          __typename t: title kind price data
          author { name born books(limit: 1, orderBy: { title: DESC }) { x: title } }
          loans { reader big at raw code }
          some: loans(where: { reader: { eq: "bob" } }) { reader }
          owner { id name }
        }
        emma: book(id: 1) { owner { ...User } loans(orderBy: { reader: DESC }) { reader at raw code big } pages }
        none: book(id: 99) { title }
        loan(book_id: 1, reader: "ann") { book { title data } }
        users { ...User }
      }
      fragment User on User { id email }`);
      // The order of the members counts too.
      assert.equal(
        JSON.stringify(body),
        JSON.stringify({
          data: {
            books: [
              {
                __typename: 'Book',
                t: 'Persuasion',
                kind: 'poem',
                price: '9.90',
                data: null,
                author: { name: 'Austen', born: '1775-12-16', books: [{ x: 'Persuasion' }] },
                loans: [],
                some: [],
                owner: null,
              },
            ],
            emma: {
              owner: { id: '1', email: 'ada@example.org' },
              loans: [
                {
                  reader: 'bob',
                  at: null,
                  raw: null,
                  code: '00000000-0000-4000-8000-00000000000a',
                  big: null,
                },
                {
                  reader: 'ann',
                  at: '2024-01-02T02:04:05.000Z',
                  raw: 'AAE=',
                  code: null,
                  big: '9223372036854775807',
                },
              ],
              pages: 400,
            },
            none: null,
            loan: { book: { title: 'Emma', data: { a: [1, 'x'] } } },
            users: [{ id: '1', email: 'ada@example.org' }],
          },
        }),
      );
    });

    test('a document gives other rows for other variables', async () => {
      await using door = await filled(await open(library));
      const query = `query ($reader: String, $limit: Int, $more: Boolean!) {
        book(id: 1) { loans(where: { reader: { eq: $reader } }, limit: $limit) { reader } title @include(if: $more) }
      }`;
      const read = (variables: object) => door.data({ query, variables });
      const [ann, bob] = ['ann', 'bob'].map((reader) => ({ loans: [{ reader }] }));
      assert.deepEqual(await read({ reader: 'ann', more: false }), { book: ann });
      assert.deepEqual(await read({ reader: 'bob', more: false }), { book: bob });
      assert.deepEqual(await read({ reader: 'bob', more: true }), { book: { ...bob, title: 'Emma' } });
      assert.deepEqual(await read({ reader: 'ann', more: false }), { book: ann });
    });

    test('connections walk a list forwards and back', async () => {
      await using door = await filled(await open(library));
      const page = (args: string, fields = 'edges { node { title } }') =>
        door.data(
          `{ c: booksConnection(orderBy: [{ author: { name: DESC } }, { title: ASC }], ${args}) { ${fields} pageInfo { hasNextPage hasPreviousPage startCursor endCursor } totalCount } }`,
        );
      const titles = (found: { readonly edges: readonly { readonly node: { readonly title: string } }[] }) =>
        found.edges.map(({ node }) => node.title);
      const { c: first } = await page('first: 2', 'edges { cursor node { title author { name } } }');
      assert.deepEqual(titles(first), ['Poems', 'Emma']);
      assert.deepEqual(first.edges[1].node, { title: 'Emma', author: { name: 'Austen' } });
      assert.equal(first.totalCount, 3);
      assert.deepEqual(
        [first.pageInfo.hasNextPage, first.pageInfo.hasPreviousPage, first.pageInfo.startCursor],
        [true, false, first.edges[0].cursor],
      );
      assert.equal(first.pageInfo.endCursor, first.edges[1].cursor);
      const { c: second } = await page(`first: 2, after: "${first.pageInfo.endCursor}"`);
      assert.deepEqual([titles(second), second.pageInfo.hasNextPage], [['Persuasion'], false]);
      const { c: back } = await page(`last: 1, before: "${second.pageInfo.startCursor}"`);
      assert.deepEqual([titles(back), back.pageInfo.hasPreviousPage], [['Emma'], true]);
      const { c: end } = await page('last: 1');
      assert.deepEqual([titles(end), end.pageInfo.hasNextPage], [['Persuasion'], false]);
      const { c: between } = await page(
        `first: 5, after: "${first.edges[0].cursor}"`,
        'a: edges { x: node { title } } b: edges { cursor }',
      );
      assert.deepEqual(between.a, [{ x: { title: 'Emma' } }, { x: { title: 'Persuasion' } }]);
      assert.equal(between.b[0].cursor, first.edges[1].cursor);
      const list = `{ books(orderBy: [{ author: { name: DESC } }, { title: ASC }], after: "${first.edges[0].cursor}") { title } }`;
      assert.deepEqual(await door.data(list), { books: [{ title: 'Emma' }, { title: 'Persuasion' }] });
      const other = await door.error(`{ books(after: "${first.edges[0].cursor}") { title } }`);
      assert.equal(other.extensions?.code, 'INVALID_CURSOR');
      const both = await door.error('{ booksConnection(first: 1, last: 1) { totalCount } }');
      assert.equal(both.extensions?.code, 'INVALID_PARAMETER');
    });

    test('a refusal says what to do, with the codes of REST', async () => {
      await using door = await open(library, { maxValues: 5_000 });
      const refused = async (query: string) => {
        const { message, extensions: { code, limit } = {} } = await door.error(query);
        return { message, code, limit };
      };
      const limit = await refused('{ books(limit: 1000) { title price kind pages data } }');
      assert.deepEqual([limit.code, limit.limit], ['LIMIT_EXCEEDED', 'maxResultValues']);
      const nested = await refused('{ authors { books(limit: 100) { title } } }');
      assert.deepEqual([nested.code, nested.limit], ['LIMIT_EXCEEDED', 'maxResultValues']);
      const high = await refused('{ books(limit: 1001) { id } }');
      assert.deepEqual(
        [high.code, high.message],
        ['INVALID_PARAMETER', '"limit" takes a limit from 1 to 1000'],
      );
      const twice = await refused('{ books(orderBy: [{ title: ASC }, { title: DESC }]) { id } }');
      assert.deepEqual(
        [twice.code, twice.message],
        ['INVALID_PARAMETER', '"orderBy" takes each column at most once'],
      );
      const value = await refused('{ books(where: { price: { eq: "x" } }) { id } }');
      assert.equal(value.code, 'INVALID_PARAMETER');
      assert.match(value.message, /^"where" compares "price"/);
    });

    test("the user's own fields are resolved over whole rows", async () => {
      const problems: string[] = [];
      await using door = await filled(
        await open(library, {
          extend: (schema) =>
            ownSchema(
              {
                typeDefs:
                  'extend type Book { shout: String!, cheap: Boolean! } extend type Query { one: Int! }',
                resolvers: {
                  Book: {
                    shout: ({ title }: { readonly title: string }) => title.toUpperCase(),
                    cheap: ({ price }: { readonly price: string }) => Number(price) < 5,
                  },
                  Query: { one: () => 1 },
                },
                schema: undefined,
              },
              schema,
              'test',
              problems,
            ),
        }),
      );
      assert.deepEqual(problems, []);
      const { body } = await door.ask(`{
        one
        authors { name books(orderBy: { title: ASC }) { shout __typename cheap a: loans(limit: 1) { reader } loans { reader } _version author { name } } }
        booksConnection(where: { price: { lt: 5 } }) { edges { node { t: title shout } } }
      }`);
      assert.equal(body.errors, undefined, JSON.stringify(body));
      const data = JSON.parse(JSON.stringify(body.data), (name, value) =>
        name === '_version' ? typeof value : value,
      );
      const book = (shout: string, cheap: boolean, loans: readonly string[], author: string) => ({
        shout,
        __typename: 'Book',
        cheap,
        a: loans.slice(0, 1).map((reader) => ({ reader })),
        loans: loans.map((reader) => ({ reader })),
        _version: 'number',
        author: { name: author },
      });
      assert.equal(
        JSON.stringify(data),
        JSON.stringify({
          one: 1,
          authors: [
            {
              name: 'Austen',
              books: [book('EMMA', false, ['ann', 'bob'], 'Austen'), book('PERSUASION', false, [], 'Austen')],
            },
            { name: 'Bronte', books: [book('POEMS', true, [], 'Bronte')] },
          ],
          booksConnection: { edges: [{ node: { t: 'Poems', shout: 'POEMS' } }] },
        }),
      );
      const { body: plain } = await door.ask('{ books(limit: 1) { title author { name } } }');
      assert.deepEqual(plain, { data: { books: [{ title: 'Emma', author: { name: 'Austen' } }] } });
    });
  });
}
