import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildSchema, parse } from 'graphql';
import { LocalUserFeed } from '../relations/events.ts';
import { MemoryUserStore } from '../relations/user-stores.ts';
import { ownSchema } from './own-schema.ts';
import { usersSchema } from './users-schema.ts';

/** What is said of options; the prefix of all lines is left out. */
function problemsOf(code: Readonly<Record<string, unknown>>): readonly string[] {
  const feed = new LocalUserFeed();
  const problems: string[] = [];
  const all = { typeDefs: undefined, resolvers: undefined, schema: undefined, ...code };
  ownSchema(all, usersSchema(new MemoryUserStore(feed, 1), feed), 'm.ts', problems);
  for (const problem of problems) assert.match(problem, /^m\.ts: graphql\.[^\n]+$/);
  return problems.map((problem) => problem.replace('m.ts: graphql.', ''));
}

const BOOKS = `
  extend type Query { books: [Book!] }
  type Book { title: String size: Size day: Day }
  enum Size { SMALL BIG }
  scalar Day
  union Any = Book
  input NewBook { title: String }
  extend type Subscription { added: Book }
`;
const RIGHT = { Query: { books: () => [] }, Subscription: { added: { async *subscribe() {} } } };
const resolversWith = (more: object) => ({ typeDefs: BOOKS, resolvers: { ...RIGHT, ...more } });

const mistakes: readonly (readonly [string, Readonly<Record<string, unknown>>, readonly string[]])[] = [
  ['nothing', {}, []],
  ['right ones', resolversWith({}), []],
  [
    'a syntax error',
    { typeDefs: 'type Query {\n  a Int\n}' },
    ['typeDefs has a syntax error at line 2, column 5: Expected ":", found Name "Int".'],
  ],
  [
    'one in the second text',
    { typeDefs: ['extend type Query { a: Int }', 'type {'] },
    ['typeDefs[1] has a syntax error at line 1, column 6: Expected Name, found "{".'],
  ],
  ['no text', { typeDefs: 7 }, ['typeDefs must be a string or a DocumentNode of type definitions, not 7']],
  ['no texts', { typeDefs: [] }, ['typeDefs is empty; leave it out']],
  [
    'a hole',
    { typeDefs: ['type A { a: Int }', undefined] },
    ['typeDefs[1] must be a string or a DocumentNode of type definitions, not undefined'],
  ],
  [
    'a query',
    { typeDefs: parse('{ hello }') },
    ['typeDefs must contain only type definitions, but has an operation or a fragment'],
  ],
  [
    'unknown types',
    { typeDefs: 'extend type Query { a: Usr b: Bok }' },
    [
      'typeDefs is not valid: Unknown type "Usr". Did you mean "User"?',
      'typeDefs is not valid: Unknown type "Bok".',
    ],
  ],
  [
    'a type that is there',
    { typeDefs: 'type User { a: Int }' },
    [
      'typeDefs is not valid: Type "User" already exists in the schema. It cannot also be defined in this type definition.',
    ],
  ],
  [
    'an invalid schema',
    { typeDefs: ['type Query { a: I }', 'type I {\n  a(b: Query): Int }\n type __No { a: Int }'] },
    [
      'typeDefs[1] is not valid at line 2, column 8: The type of I.a(b:) must be Input Type but got: Query.',
      'typeDefs[1] is not valid at line 3, column 2: Name "__No" must not begin with "__", which is reserved by GraphQL introspection.',
    ],
  ],
  ['no object', { typeDefs: BOOKS, resolvers: 'x' }, ['resolvers must be an object of types, not "x"']],
  [
    'an unknown type',
    resolversWith({ Boook: {} }),
    ['resolvers.Boook is not a type of the schema; did you mean Book?'],
  ],
  [
    'an unknown field',
    resolversWith({ Book: { titel: () => 1 } }),
    ['resolvers.Book.titel is not a field of Book; did you mean title?'],
  ],
  [
    'an input type',
    resolversWith({ NewBook: {} }),
    ['resolvers.NewBook is an input type, which has no resolvers'],
  ],
  [
    'a type of GraphQL',
    resolversWith({ String: {}, __Type: {} }),
    [
      'resolvers.String is a built-in type of GraphQL, which has no resolvers',
      'resolvers.__Type is a built-in type of GraphQL, which has no resolvers',
    ],
  ],
  [
    'no fields',
    resolversWith({ Book: () => 1 }),
    ['resolvers.Book must be an object of fields, not a function'],
  ],
  [
    'a field that is no function',
    resolversWith({ Book: { title: 'x' } }),
    ['resolvers.Book.title must be a function or { resolve }, not "x"'],
  ],
  [
    'parts of a field',
    resolversWith({ Book: { title: { resolve: 1, subscribe: () => 1 } } }),
    [
      'resolvers.Book.title.resolve must be a function, not 1',
      'resolvers.Book.title has an unknown key "subscribe"',
    ],
  ],
  [
    'a subscription that is a function',
    resolversWith({ Subscription: { added: () => 1 } }),
    ['resolvers.Subscription.added must be { subscribe, resolve }, not a function'],
  ],
  [
    'a union with fields',
    resolversWith({ Any: { title: () => 1, __resolveType: 1 } }),
    [
      'resolvers.Any.title is not allowed: an interface or a union takes only __resolveType, its object types have the fields',
      'resolvers.Any.__resolveType must be a function, not 1',
    ],
  ],
  [
    'a test of a type',
    resolversWith({ Book: { __isTypeOf: true } }),
    ['resolvers.Book.__isTypeOf must be a function, not true'],
  ],
  [
    'an unknown value',
    resolversWith({ Size: { SMAL: 1 } }),
    ['resolvers.Size.SMAL is not a value of Size; did you mean SMALL?'],
  ],
  [
    'no scalar',
    resolversWith({ Day: () => 1 }),
    [
      'resolvers.Day must be a GraphQLScalarType or an object with serialize, parseValue, parseLiteral, coerceOutputValue, coerceInputValue, coerceInputLiteral, valueToLiteral',
    ],
  ],
  [
    'half a scalar',
    resolversWith({
      Day: { parseLiteral: () => 1, serialise: () => 1, parseValue: undefined, serialize: 1 },
    }),
    [
      'resolvers.Day has an unknown key "serialise"; did you mean serialize?',
      'resolvers.Day.serialize must be a function, not 1',
      'resolvers.Day has parseLiteral, so it also needs parseValue',
    ],
  ],
  [
    'root fields without resolvers',
    { typeDefs: BOOKS },
    ['resolvers has no resolver for Query.books', 'resolvers has no subscribe for Subscription.added'],
  ],
  ['a schema that is none', { schema: { query: 1 } }, ['schema must be a GraphQLSchema, not an object']],
  [
    'a schema without queries',
    { schema: buildSchema('type A { a: Int }') },
    ['schema is not valid: Query root type must be provided.'],
  ],
  [
    'a schema and definitions',
    { schema: buildSchema('type Query { a: Int }'), typeDefs: 'type A', resolvers: {} },
    [
      'typeDefs and graphql.schema exclude each other; leave one out',
      'resolvers and graphql.schema exclude each other; leave one out',
    ],
  ],
  [
    'what only looks like a schema',
    { schema: { [Symbol.toStringTag]: 'GraphQLSchema' } },
    [
      'schema cannot be read, perhaps because of its GraphQL.js version: TypeError: schema.toConfig is not a function',
    ],
  ],
];

for (const [name, code, expected] of mistakes) {
  test(`mistakes in a schema: ${name}`, () => assert.deepEqual(problemsOf(code), expected));
}
