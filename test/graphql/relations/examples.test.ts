import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parse, validate } from 'graphql';
import { readExamples } from '../../../src/graphql/graphiql/page/start.ts';
import { openDoor, send } from '../support/door.ts';
import { graphqlRelationDoors, library, type RelationsDoor, relationsOf } from '../support/relations-door.ts';

/** Columns of all types that a row needs, with the bounds that an example has to keep. */
const kinds = relationsOf({
  shelves: {
    one: 'shelf',
    columns: {
      whole: { type: 'integer', min: 7, max: 9 },
      low: { type: 'integer', max: -3 },
      big: { type: 'bigint', min: '5' },
      price: { type: 'decimal', precision: 4, scale: 2, min: '1' },
      cost: { type: 'decimal', precision: 4, scale: 2, max: '-1.50' },
      double: { type: 'number', max: 0.5 },
      flag: { type: 'boolean' },
      code: { type: 'text', max: 2 },
      day: { type: 'date' },
      at: { type: 'timestamp' },
      token: { type: 'uuid' },
      kind: { type: 'enum', values: ['a', 'b'] },
      mood: { type: 'enum', values: ['very glad'] },
      data: { type: 'json' },
      raw: { type: 'bytes', max: 1 },
      next: { type: 'reference', to: 'shelves', nullable: true, inverse: 'before' },
    },
  },
});

/** A relation that needs rows of others, and these those of others again. */
const nested = relationsOf({
  loans: {
    columns: { book: { type: 'reference', to: 'books' }, reader: { type: 'text', max: 5 } },
    changes: false,
  },
  books: { columns: { title: { type: 'text', max: 40 }, author: { type: 'reference', to: 'authors' } } },
  authors: { columns: { name: { type: 'text', max: 40 }, born: { type: 'date', nullable: true } } },
});

/** The examples of the page of a door. */
async function shown(url: string) {
  const { text } = await send(url, { headers: { accept: 'text/html' } });
  const [, data] = /data-examples="([^"]*)"/.exec(text) ?? [];
  const examples = readExamples(
    data?.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&amp;', '&'),
  );
  return { isOwn: data === undefined, ...examples };
}

async function checked(door: RelationsDoor) {
  const { isOwn, tabs, newTab } = await shown(door.url);
  assert.equal(isOwn, false);
  for (const query of [...tabs.map((each) => each.query), newTab])
    assert.deepEqual(validate(door.schema, parse(query)), [], query);
  const run = async ({ query, variables = '{}' }: (typeof tabs)[number]) =>
    await door.data({ query, variables: JSON.parse(variables) });
  const [list, create] = tabs;
  assert.ok(list !== undefined && create !== undefined);
  const created = await run(create);
  return { created, listed: await run(list), subscription: tabs[2]?.query };
}

for (const [engine, open] of Object.entries(graphqlRelationDoors)) {
  describe(`the first tabs of GraphiQL on ${engine}`, () => {
    test('list, create and follow rows of the first relation', async () => {
      await using door = await open(library);
      const { created, listed, subscription } = await checked(door);
      assert.deepEqual(created, { createAuthor: { id: '1', name: 'Ada Lovelace', born: null } });
      assert.deepEqual(listed, { authors: [created.createAuthor] });
      assert.match(
        subscription ?? '',
        /subscription AuthorCreated \{\n {2}authorCreated \{\n {4}id\n {4}name/,
      );
    });

    test('create rows with columns of all types', async () => {
      await using door = await open(kinds);
      const { created } = await checked(door);
      assert.deepEqual(created.createShelf, { id: '1', whole: 7, low: -3, big: '5' });
    });

    test('create the rows that a row needs, and follow a relation that records its changes', async () => {
      await using door = await open(nested);
      const { listed, subscription } = await checked(door);
      assert.deepEqual(listed, {
        loans: [{ id: '1', book_id: 1, reader: 'Ada L', book: { __typename: 'Book' } }],
      });
      assert.match(subscription ?? '', /bookCreated/);
    });
  });
}

test('are those of users where the schema has no relations, is hidden, or needs credentials', async () => {
  const relations = { books: { columns: { title: { type: 'text', max: 9 } } } };
  const own = async (config: object, env: Record<string, string> = {}) => {
    await using door = await openDoor({ module: `export default ${JSON.stringify(config)};`, env });
    return (await shown(door.url)).isOwn;
  };
  const tokens = { one: { secret: 'one-0123456789012345', scopes: ['*:read'] } };
  assert.equal(await own({ relations }), false);
  assert.equal(await own({}), true);
  assert.equal(await own({ relations }, { GRAPHQL_INTROSPECTION: 'false' }), true);
  assert.equal(await own({ relations, api: { required: 'all', tokens } }), true);
});
