import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  type ExecutionResult,
  GraphQLScalarType,
  type GraphQLSchema,
  graphql,
  isScalarType,
  isSchema,
  parse,
  printSchema,
  subscribe,
} from 'graphql';
import { LocalUserFeed } from '../relations/events.ts';
import { MemoryUserStore } from '../relations/user-stores.ts';
import type { Resolvers } from './config.ts';
import { ownSchema, type SchemaCode } from './own-schema.ts';
import { usersSchema } from './users-schema.ts';

function read(code: Partial<SchemaCode>): { readonly schema: GraphQLSchema; readonly problems: string[] } {
  const feed = new LocalUserFeed();
  const problems: string[] = [];
  const all = { typeDefs: undefined, resolvers: undefined, schema: undefined, ...code };
  return {
    schema: ownSchema(all, usersSchema(new MemoryUserStore(feed, 10), feed), 'm.ts', problems),
    problems,
  };
}

/** The schema of definitions and resolvers that are right. */
function made(typeDefs: unknown, resolvers?: Resolvers<never>): GraphQLSchema {
  const { schema, problems } = read({ typeDefs, resolvers });
  assert.deepEqual(problems, []);
  return schema;
}

/** Another copy: the package holds its modules twice, and this file imports the other ones. */
const other = createRequire(import.meta.url)(
  fileURLToPath(new URL('index.js', import.meta.resolve('graphql'))),
) as typeof import('graphql');

const ask = async (schema: GraphQLSchema, source: string, contextValue: unknown = undefined) => {
  const { data, errors }: ExecutionResult = await graphql({ schema, source, contextValue });
  assert.deepEqual(
    errors?.map(({ message }) => message),
    undefined,
  );
  return JSON.parse(JSON.stringify(data)) as unknown;
};

test('extensions add to the built-in schema, whose fields stay', async () => {
  const schema = made('extend type Query { twice(of: Int!): Int! } extend type User { shout: String! }', {
    Query: { twice: async (_parent, { of }: { of: number }) => 2 * of },
    User: { shout: (user: { name: string }) => user.name.toUpperCase() },
  });
  assert.deepEqual(await ask(schema, '{ hello twice(of: 4) user(id: 1) { id shout } }'), {
    hello: 'Hello from Portico!',
    twice: 8,
    user: { id: '1', shout: 'ADA LOVELACE' },
  });
});

test('a type Query, or a schema, is the whole of it', async () => {
  const schema = made('type Query { own: String }', { Query: { own: { resolve: () => 'mine' } } });
  assert.equal(printSchema(schema), 'type Query {\n  own: String\n}');
  const renamed = made('schema { query: Root } type Root { own: String }', { Root: { own: () => 'r' } });
  assert.deepEqual(await ask(renamed, '{ own }'), { own: 'r' });
});

test('definitions come as texts, documents, or several of both', () => {
  const [a, b] = ['extend type Query { a: Int }', 'extend type Query { b: Int }'];
  const resolvers = { Query: { a: () => 1, b: () => 2 } };
  for (const typeDefs of [`${a} ${b}`, [a, b], [parse(a), b], parse(`${a} ${b}`)]) {
    const fields = made(typeDefs, resolvers).getQueryType()?.getFields() ?? {};
    assert.deepEqual(Object.keys(fields), ['hello', 'users', 'user', 'a', 'b']);
  }
});

test('a built-in field can have another resolver, which runs for each time that it is asked for', async () => {
  let runs = 0;
  const users = () => {
    runs++;
    return [];
  };
  const { schema, problems } = read({ resolvers: { Query: { users } } });
  assert.deepEqual(problems, []);
  assert.deepEqual(await ask(schema, '{ a: users { id } b: users { id } }'), { a: [], b: [] });
  assert.equal(runs, 2);
  assert.equal(schema.getQueryType()?.getFields().users?.extensions.once, undefined);
  assert.equal(schema.getQueryType()?.getFields().user?.extensions.once, true);
});

test('enums, scalars and abstract types get what belongs to them', async () => {
  const day = {
    serialize: (value: unknown) => `day ${value}`,
    parseValue: (value: unknown) => Number(value),
  };
  const typeDefs = `
    type Query { pick(color: Color = RED, day: Day, hour: Hour): [Thing!]! node: Node }
    enum Color { RED GREEN }
    scalar Day @specifiedBy(url: "https://example.com/day")
    scalar Hour
    union Thing = Paint | Date
    interface Node { id: ID! }
    type Paint implements Node { id: ID! color: Color! }
    type Date { day: Day hour: Hour }
  `;
  const schema = made(typeDefs, {
    Query: {
      pick: (_parent, { color, day: given, hour }: { color: string; day: unknown; hour: unknown }) => [
        { color },
        { day: given, hour },
      ],
      node: () => ({ id: 7, color: '#0f0' }),
    },
    Color: { RED: '#f00', GREEN: '#0f0' },
    Day: day,
    Hour: new GraphQLScalarType({
      name: 'Any',
      coerceInputValue: (value) => [value],
      parseValue: (value) => [value],
    }),
    Thing: { __resolveType: (value: object) => ('color' in value ? 'Paint' : 'Date') },
    Paint: { __isTypeOf: (value: object) => 'color' in value, id: () => 1 },
    Node: {},
  });
  const source =
    '{ pick(day: "3", hour: 4) { ... on Paint { id color } ... on Date { day hour } } node { __typename } }';
  assert.deepEqual(await ask(schema, source), {
    pick: [
      { id: '1', color: 'RED' },
      { day: 'day 3', hour: [4] },
    ],
    node: { __typename: 'Paint' },
  });
  assert.match(printSchema(schema), /@specifiedBy\(url: "https:\/\/example.com\/day"\)/);
});

test('a subscription has events and the value of each', async () => {
  const schema = made('extend type Subscription { tick: Int }', {
    Subscription: {
      tick: {
        async *subscribe() {
          yield* [1, 2];
        },
        resolve: (event: number) => event * 10,
      },
    },
  });
  const events = await subscribe({ schema, document: parse('subscription { tick }') });
  assert.ok(Symbol.asyncIterator in events);
  const results: unknown[] = [];
  for await (const { data } of events) results.push(data?.tick);
  assert.deepEqual(results, [10, 20]);
});

test('a whole schema is taken as it is, and made anew when another copy of GraphQL.js has made it', async () => {
  const sdl = `
    directive @mark(as: String = "x") on FIELD_DEFINITION
    interface Node { id: ID! }
    enum Size { SMALL BIG }
    input Filter { size: Size = BIG, not: Filter }
    type Box implements Node { id: ID! size: Size, inside: [Box!] }
    union Any = Box
    scalar When
    type Query { boxes(filter: Filter = { size: SMALL }): [Node!]! any: Any when(at: When): When @deprecated }
    type Mutation { add: Boolean }
  `;
  const foreign = other.buildSchema(sdl);
  const query = foreign.getQueryType()?.getFields();
  assert.ok(query?.boxes && query.any);
  query.boxes.resolve = (_root, { filter }) => [{ __typename: 'Box', id: 1, size: filter.size, inside: [] }];
  query.any.resolve = () => ({ __typename: 'Box', id: 2 });
  const { schema, problems } = read({ schema: foreign });
  assert.deepEqual(problems, []);
  assert.ok(isSchema(schema) && !isSchema(foreign));
  assert.equal(printSchema(schema), other.printSchema(foreign));
  const source =
    '{ boxes { id ... on Box { size inside { id } } } any { ... on Box { id } } __schema { types { name } } }';
  const data = (await ask(schema, source)) as { boxes: unknown; any: unknown };
  assert.deepEqual(data.boxes, [{ id: '1', size: 'SMALL', inside: [] }]);
  assert.deepEqual(data.any, { id: '2' });

  const own = made('type Query { a: Int }', { Query: { a: () => 1 } });
  assert.ok(read({ schema: own }).schema === own);
});

test('resolvers of another copy of GraphQL.js have their scalars taken too', async () => {
  assert.ok(!isScalarType(new other.GraphQLScalarType({ name: 'X' })));
  const Loud = new other.GraphQLScalarType({ name: 'Loud', coerceOutputValue: (value) => `${value}!` });
  const document = other.parse('type Query { word: Loud } scalar Loud');
  const schema = made(document, { Loud, Query: { word: () => 'hey' } });
  assert.deepEqual(await ask(schema, '{ word }'), { word: 'hey!' });
});
