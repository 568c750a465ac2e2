import assert from 'node:assert/strict';
import {
  buildClientSchema,
  type GraphQLSchema,
  getIntrospectionQuery,
  type IntrospectionQuery,
  lexicographicSortSchema,
  printSchema,
  printType,
} from 'graphql';
import type { Check, Subject } from '../check.ts';
import { ask, assertRefused, data, dataOf } from '../clients/graphql.ts';

/**
 * Contract 2.1 and 4.1 in GraphQL's own language, in alphabetical order, and one addition: the contract names
 * queries and mutations, and says nothing of subscriptions.
 */
const contract = `type Mutation {
  createUser(email: String!, name: String!): User!
}

type Query {
  hello: String!
  user(id: ID!): User
  users: [User!]!
}

type Subscription {
  userCreated: User!
  userDeleted: User!
  userUpdated: User!
}

type User {
  email: String!
  id: ID!
  name: String!
}`;

async function schemaOf(subject: Subject): Promise<GraphQLSchema> {
  const answer = await data(subject, getIntrospectionQuery({ descriptions: false }));
  return lexicographicSortSchema(buildClientSchema(answer as unknown as IntrospectionQuery));
}

/** The schema, and what a client may ask of it. */
export const graphqlSchemaChecks: readonly Check[] = [
  {
    id: 'GQL-01',
    heading: 'graphql-operations',
    level: 'MUST',
    title: 'introspection shows exactly the schema of the contract',
    async run(subject) {
      assert.equal(printSchema(await schemaOf(subject)).trim(), contract);
    },
  },
  {
    id: 'GQL-02',
    heading: 'graphql-user',
    level: 'MUST',
    title: 'the type User has exactly id: ID!, name: String! and email: String!',
    async run(subject) {
      const answer = await data(
        subject,
        '{ __type(name: "User") { kind fields { name args { name } type { kind name ofType { kind name } } } } }',
      );
      const field = (name: string, type: string) => ({
        name,
        args: [],
        type: { kind: 'NON_NULL', name: null, ofType: { kind: 'SCALAR', name: type } },
      });
      const type = answer.__type as { kind: string; fields: readonly { name: string }[] };
      assert.equal(type.kind, 'OBJECT');
      assert.deepEqual(
        type.fields.toSorted((a, b) => a.name.localeCompare(b.name)),
        [field('email', 'String'), field('id', 'ID'), field('name', 'String')],
      );
    },
  },
  {
    id: 'GQL-03',
    heading: 'graphql-operations',
    level: 'MUST',
    title: 'hello is a string',
    async run(subject) {
      const answer = await data(subject, '{ hello }');
      assert.deepEqual(Object.keys(answer), ['hello']);
      assert.equal(typeof answer.hello, 'string');
    },
  },
  {
    id: 'GQL-04',
    heading: 'graphql-operations',
    level: 'MUST',
    title: 'only the selected fields of a user come back, in the order of the selection',
    async run(subject) {
      const { users } = await data(subject, '{ users { name } }');
      assert.ok(Array.isArray(users) && users.length >= 2);
      for (const user of users) assert.deepEqual(Object.keys(user), ['name']);
      const { user } = await data(subject, '{ user(id: "1") { email id } }');
      assert.deepEqual(Object.keys(user as object), ['email', 'id']);
      const { createUser } = await data(
        subject,
        'mutation { createUser(name: "Only", email: "only@example.org") { id } }',
      );
      assert.deepEqual(Object.keys(createUser as object), ['id']);
    },
  },
  {
    id: 'GQL-05',
    heading: 'graphql-operations',
    level: 'MUST',
    title: 'data has one member per requested field, under its alias when it has one',
    async run(subject) {
      const answer = await data(
        subject,
        '{ hello again: hello first: user(id: "1") { key: id } second: user(id: "2") { id } none: user(id: "x") { id } }',
      );
      assert.deepEqual(Object.keys(answer), ['hello', 'again', 'first', 'second', 'none']);
      assert.equal(answer.again, answer.hello);
      assert.deepEqual(answer.first, { key: '1' });
      assert.deepEqual(answer.second, { id: '2' });
      assert.equal(answer.none, null);
    },
  },
  {
    id: 'GQL-06',
    heading: 'graphql-operations',
    level: 'MUST',
    title: 'variables, defaults, fragments, __typename and @include/@skip work',
    async run(subject) {
      const query = `
        query Find($id: ID! = "2", $more: Boolean!) { user(id: $id) { ...Known } }
        fragment Known on User { __typename id email @include(if: $more) name @skip(if: $more) }`;
      const byDefault = await data(subject, query, { more: false });
      assert.deepEqual(Object.keys(byDefault.user as object), ['__typename', 'id', 'name']);
      assert.equal((byDefault.user as { id: string }).id, '2');
      const { user } = await data(subject, query, { id: '1', more: true });
      assert.deepEqual(Object.keys(user as object), ['__typename', 'id', 'email']);
      assert.equal((user as { __typename: string }).__typename, 'User');
      assert.equal((user as { id: string }).id, '1');
    },
  },
  {
    id: 'GQL-07',
    heading: 'graphql-operations',
    level: 'MUST',
    title: 'operationName chooses the operation of a document, each time it is sent',
    async run(subject) {
      const query = 'query A { a: hello } query B { b: user(id: "1") { id } }';
      for (let round = 0; round < 12; round += 1) {
        const operationName = round % 3 === 0 ? 'B' : 'A';
        const answer = dataOf(await ask(subject, { query, operationName }));
        assert.deepEqual(Object.keys(answer), [operationName.toLowerCase()], `round ${round}`);
      }
    },
  },
  {
    id: 'GQL-08',
    heading: 'graphql-operations',
    level: 'SHOULD',
    title: 'a document of several operations is refused without a name and with an unknown one',
    async run(subject) {
      const query = 'query A { hello } query B { hello }';
      for (let round = 0; round < 4; round += 1) {
        assertRefused(await ask(subject, { query }));
        assertRefused(await ask(subject, { query, operationName: 'C' }));
        dataOf(await ask(subject, { query, operationName: 'A' }));
      }
    },
  },
  {
    id: 'GQL-09',
    heading: 'graphql-operations',
    level: 'SHOULD',
    title: 'the same text gives the same answer however often it is sent',
    async run(subject) {
      const replies = new Set<string>();
      for (let round = 0; round < 12; round += 1) {
        const reply = await ask(subject, { query: '{ hello u: user(id: "1") { id name email } }' });
        assert.deepEqual(Object.keys(dataOf(reply)), ['hello', 'u']);
        replies.add(reply.text);
      }
      assert.equal(replies.size, 1);
    },
  },
  {
    id: 'GQL-10',
    heading: 'graphql-operations',
    level: 'MUST',
    title: 'each type of the contract is there with exactly its fields, arguments and nullability',
    async run(subject) {
      const schema = await schemaOf(subject);
      const types = [schema.getMutationType(), schema.getQueryType(), schema.getType('User')];
      for (const type of types) assert.ok(type && contract.includes(printType(type)), String(type));
    },
  },
];
