import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { printSchema } from 'graphql';
import { ownSchema } from '../../../src/graphql/own-schema.ts';
import { usersSchema } from '../../../src/graphql/users-schema.ts';
import { Connection } from '../../../src/sql/postgres-pool/connection.ts';
import { ask, openDoor } from '../support/door.ts';
import {
  captureError,
  graphqlRelationDoors,
  type RelationsDoor,
  relationsOf,
} from '../support/relations-door.ts';

const STAFF = {
  users: {
    columns: {
      phone: { type: 'text', max: 8, nullable: true },
      level: { type: 'integer', min: 0, max: 99, default: 1 },
      kind: { type: 'enum', values: ['staff', 'guest'], nullable: true },
      manager: { type: 'reference', to: 'users', inverse: 'reports', nullable: true, onDelete: 'null' },
    },
    indexes: [['phone']],
  },
  books: {
    columns: {
      title: { type: 'text', max: 40 },
      owner: { type: 'reference', to: 'users', inverse: 'books' },
    },
    indexes: [['title']],
  },
} as const;
const staff = relationsOf(STAFF);
const extended = { extendsUsers: true };

/** Ann, who has two books and two reports, Bob and Cid. */
async function filled(door: RelationsDoor): Promise<RelationsDoor> {
  for (const name of ['Ann', 'Bob', 'Cid'])
    await door.database.users.create({ name, email: `${name}@example.org` });
  const { rows } = door.database.users;
  assert.ok(rows !== undefined);
  const at = (name: string) => rows.relation.columns.findIndex((column) => column.name === name);
  await rows.change(
    [1],
    new Map([
      [at('phone'), '111'],
      [at('kind'), 'staff'],
    ]),
    undefined,
  );
  for (const id of [2, 3]) await rows.change([id], new Map([[at('manager_id'), 1]]), undefined);
  await door.data(
    'mutation { createBooks(data: [{ title: "Emma", owner_id: 1 }, { title: "Poems", owner_id: 1 }, { title: "Ulysses", owner_id: 2 }]) { id } }',
  );
  return door;
}

/** What runs on rows of users and books, while something is done. */
async function statementsOf(work: () => Promise<unknown>): Promise<readonly string[]> {
  const { run } = Connection.prototype;
  const found: string[] = [];
  using _ = { [Symbol.dispose]: () => Object.assign(Connection.prototype, { run }) };
  Connection.prototype.run = function (statement, values) {
    if (/\b(?:users|books)\b/.test(statement.text)) found.push(statement.text);
    return run.call(this, statement, values);
  };
  await work();
  return found;
}

for (const [engine, open] of Object.entries(graphqlRelationDoors)) {
  describe(`users with what a declaration adds on ${engine}`, () => {
    test('their type has its columns, its references and the rows that refer to them', async () => {
      await using door = await open(staff, extended);
      const { __type: user } = await door.data(
        '{ __type(name: "User") { fields { name type { kind name ofType { kind name } } args { name } } } }',
      );
      const shown = (field: {
        readonly name: string;
        readonly type: {
          readonly name: string | null;
          readonly ofType: { readonly name: string | null } | null;
        };
        readonly args: readonly { readonly name: string }[];
      }) => {
        const type = field.type.name ?? `${field.type.ofType?.name ?? 'list'}!`;
        return [field.name, type, ...field.args.map(({ name }) => name)].join(' ');
      };
      assert.deepEqual(user.fields.map(shown), [
        'id ID!',
        'name String!',
        'email String!',
        'phone String',
        'level Int!',
        'kind UserKind',
        'manager_id SafeInt',
        'manager User',
        'books list! where orderBy limit',
        'reports list! where orderBy limit',
      ]);
      const text = printSchema(door.schema);
      for (const line of [
        '\n  users: [User!]!\n',
        '\n  createUser(\n',
        '): UserConnection!\n',
        'type UserEdge {',
        '\n  owner: User!\n',
      ])
        assert.ok(text.includes(line), line);
      assert.ok(
        !/usersAggregate|createUsers|updateUser|UserCreate|_version: SafeInt\n}\n\ntype User /.test(text),
      );
      // With users in memory their type is that of the contract.
      await using plain = await open(staff);
      const contract = printSchema(usersSchema(door.database.users, door.database.userFeed));
      const [, type] = /\n(type User \{.*?\n\})/s.exec(contract) ?? [];
      assert.ok(type !== undefined && printSchema(plain.schema).includes(type));
      assert.ok(!printSchema(plain.schema).includes('UserConnection'));
    });

    test('fields of the contract keep their bytes, and others follow them', async () => {
      await using door = await filled(await open(staff, extended));
      const all =
        '{"data":{"users":[{"id":"1","name":"Ann","email":"Ann@example.org"},{"id":"2","name":"Bob","email":"Bob@example.org"},{"id":"3","name":"Cid","email":"Cid@example.org"}]}}';
      assert.equal((await door.ask('{ users { id name email } }')).text, all);
      assert.equal((await door.ask('{ users { __typename } }')).text.includes('"User"'), true);
      const { text } = await door.ask(`{
        users { phone kind t: __typename id books(orderBy: { title: DESC }) { title owner { level } } }
        user(id: "1") { name level manager { id } reports(limit: 1) { id phone manager { phone } } }
        none: user(id: 9) { phone }
        odd: user(id: "01") { phone }
        book(id: 3) { owner { id phone manager { books(where: { title: { prefix: "P" } }) { id } } } }
      }`);
      const book = (title: string) => ({ title, owner: { level: 1 } });
      assert.equal(
        text,
        JSON.stringify({
          data: {
            users: [
              { phone: '111', kind: 'staff', t: 'User', id: '1', books: [book('Poems'), book('Emma')] },
              { phone: null, kind: null, t: 'User', id: '2', books: [book('Ulysses')] },
              { phone: null, kind: null, t: 'User', id: '3', books: [] },
            ],
            user: {
              name: 'Ann',
              level: 1,
              manager: null,
              reports: [{ id: '2', phone: null, manager: { phone: '111' } }],
            },
            none: null,
            odd: null,
            book: { owner: { id: '2', phone: null, manager: { books: [{ id: '2' }] } } },
          },
        }),
      );
    });

    test('the same document can select more for one variable than for another', async () => {
      await using door = await filled(await open(staff, extended));
      const query =
        'query ($more: Boolean!) { a: user(id: 1) { id ...More } b: user(id: 1) { id ...More } } fragment More on User { phone @include(if: $more) }';
      for (const more of [true, false, true]) {
        const user = more ? { id: '1', phone: '111' } : { id: '1' };
        assert.deepEqual(await door.data({ query, variables: { more } }), { a: user, b: user });
      }
    });

    test('a connection walks them, filtered and sorted by what is declared', async () => {
      await using door = await filled(await open(staff, extended));
      const page = (args: string) =>
        door.data(
          `{ c: usersConnection(${args}) { totalCount pageInfo { hasNextPage endCursor } edges { cursor node { name phone books { title } } } } }`,
        );
      const { c: first } = await page('first: 2, orderBy: [{ level: ASC }, { name: DESC }]');
      assert.deepEqual(
        [
          first.totalCount,
          first.pageInfo.hasNextPage,
          first.edges.map((edge: { node: unknown }) => edge.node),
        ],
        [
          3,
          true,
          [
            { name: 'Cid', phone: null, books: [] },
            { name: 'Bob', phone: null, books: [{ title: 'Ulysses' }] },
          ],
        ],
      );
      const { c: rest } = await page(
        `first: 2, orderBy: [{ level: ASC }, { name: DESC }], after: "${first.pageInfo.endCursor}"`,
      );
      assert.deepEqual(rest.edges[0].node.name, 'Ann');
      const { c: found } = await page(
        'where: { books: { some: { title: { prefix: "E" } } }, id: { in: ["1", 2] } }',
      );
      assert.deepEqual([found.totalCount, found.edges[0].node.phone], [1, '111']);
      // What the contract has of users alone is enough for a page.
      assert.deepEqual(await door.data('{ usersConnection(first: 1) { edges { node { id email } } } }'), {
        usersConnection: { edges: [{ node: { id: '1', email: 'Ann@example.org' } }] },
      });
    });

    test('limits hold before a statement runs', async () => {
      await using door = await filled(await open(staff, { ...extended, maxValues: 50_000 }));
      const deep = (levels: number): string => (levels === 0 ? 'id' : `manager { ${deep(levels - 1)} }`);
      const many = Array.from({ length: 21 }, (_, i) => `b${i}: books(limit: 1) { id }`).join(' ');
      for (const [selection, limit] of [
        [deep(5), 'levels'],
        [many, 'embeds'],
        ['books(limit: 60) { id }', 'maxResultValues'],
      ] as const) {
        for (const field of ['users', 'user(id: 1)', 'usersConnection { edges { node']) {
          const isValues = limit === 'maxResultValues';
          if (isValues && field !== 'users') continue;
          const end = '}'.repeat(field.split('{').length - 1);
          const ran = await statementsOf(async () => {
            const { message, extensions } = await door.error(`{ ${field} { ${selection} } ${end} }`);
            assert.equal(extensions?.code, 'LIMIT_EXCEEDED', message);
            assert.ok(`${message} ${String(extensions?.limit)}`.includes(limit), message);
          });
          assert.deepEqual(ran, []);
        }
      }
      // A mutation writes nothing if what it selects is refused.
      const refused = await door.error(`mutation { createUser(name: "Dan", email: "d@x") { ${deep(5)} } }`);
      assert.equal(refused.extensions?.code, 'LIMIT_EXCEEDED');
      assert.equal((await door.data('{ users { id } }')).users.length, 3);
    });

    test('more users than a page are refused, and none is left out in silence', async () => {
      await using door = await open(staff, extended);
      const users = Array.from({ length: 1_001 }, (_, i) => ({ name: `u${i}`, email: `u${i}@x` }));
      await door.database.users.importUsers(users.slice(0, 1_000));
      const { users: all } = await door.data('{ users { id level } }');
      assert.deepEqual([all.length, all[999]], [1_000, { id: '1000', level: 1 }]);
      await door.database.users.importUsers(users.slice(1_000));
      const { message, extensions } = await door.error('{ users { id level } }');
      assert.deepEqual([extensions?.code, extensions?.limit], ['LIMIT_EXCEEDED', 'page']);
      assert.match(message, /usersConnection/);
      assert.equal((await door.data('{ users { id } }')).users.length, 1_001);
    });

    test('a created user has them, and events have what they store', async () => {
      await using door = await filled(await open(staff, extended));
      const created = await door.ask(
        'mutation { a: createUser(name: "Dan", email: "dan@x") { id level phone books { id } } b: createUser(name: "Eve", email: "eve@x") { id name } }',
      );
      assert.equal(
        created.text,
        '{"data":{"a":{"id":"4","level":1,"phone":null,"books":[]},"b":{"id":"5","name":"Eve"}}}',
      );
      const wrong = await door.ask('mutation { createUser(name: "", email: "x") { level } }');
      assert.equal(wrong.body.errors?.[0]?.extensions?.code, 'INVALID_USER');
      for (const name of ['userCreated', 'userUpdated', 'userDeleted']) {
        const accept = { accept: 'text/event-stream' };
        const { text } = await door.ask(`subscription { ${name} { id level } }`, accept);
        assert.match(text, /"INVALID_PARAMETER"/);
        assert.match(text, new RegExp(`${name}.{1,3} delivers the id, the name and the email`));
      }
    });

    test("the user's own fields of users are resolved over what they select", async () => {
      const problems: string[] = [];
      const seen: object[] = [];
      const resolvers = {
        User: {
          shout(user: { readonly name: string }) {
            seen.push({ ...user });
            return user.name.toUpperCase();
          },
        },
        Query: { me: () => ({ id: '1', name: 'me', email: 'me@x' }) },
      };
      const typeDefs = 'extend type User { shout: String! } extend type Query { me: User }';
      await using door = await filled(
        await open(staff, {
          ...extended,
          extend: (schema) => ownSchema({ typeDefs, resolvers, schema: undefined }, schema, 'test', problems),
        }),
      );
      assert.deepEqual(problems, []);
      assert.deepEqual(
        await door.data(
          '{ a: user(id: 1) { shout } b: user(id: 1) { id shout level books(limit: 1) { title owner { shout } } } me { name phone } }',
        ),
        {
          a: { shout: 'ANN' },
          b: { id: '1', shout: 'ANN', level: 1, books: [{ title: 'Emma', owner: { shout: 'ANN' } }] },
          me: { name: 'me', phone: null },
        },
      );
      const contract = { id: '1', name: 'Ann', email: 'Ann@example.org' };
      const phones = seen.map((user) => {
        const { id, name, email, phone } = user as Readonly<Record<string, unknown>>;
        assert.deepEqual({ id, name, email }, contract);
        return phone;
      });
      assert.deepEqual(phones.toSorted(), ['111', '111', undefined]);
    });

    if (engine !== 'postgres') return;
    test('each level is one statement', async () => {
      await using door = await filled(await open(staff, extended));
      for (const [query, statements] of [
        ['{ users { id phone } }', 1],
        ['{ user(id: 1) { phone books { title } reports { books { title } } } }', 4],
        ['{ usersConnection { edges { node { name books { title owner { phone } } } } } }', 3],
      ] as const) {
        const ran = await statementsOf(() => door.data(query));
        assert.equal(ran.length, statements, `${query}\n${ran.join('\n')}`);
      }
    });
  });
}

describe('users of a service', () => {
  const moduleOf = (config: object) => `export default ${JSON.stringify(config)};`;
  const { users } = STAFF;
  const text = async (config: object, database: boolean) => {
    const env = database ? { GRAPHQL_USERS: 'database' } : {};
    await using door = await openDoor({ module: moduleOf(config), env });
    return printSchema((await schemaOf(door.url)) as never);
  };
  const schemaOf = async (url: string) => {
    const { buildClientSchema, getIntrospectionQuery } = await import('graphql');
    const { body } = await ask(url, getIntrospectionQuery());
    return buildClientSchema(body.data as never);
  };

  test('have what a declaration adds only in the database', async () => {
    const contract = await text({}, false);
    assert.equal(await text({}, true), contract);
    // A declaration of users alone changes nothing for those in memory.
    const only = { relations: { users: { columns: { phone: users.columns.phone } } } };
    assert.equal(await text(only, false), contract);
    const more = await text(only, true);
    assert.match(more, /type User \{.*\n {2}phone: String\n\}/s);
    assert.match(more, /\n {2}usersConnection\(/);
  });

  test('answer the document of the guide', async () => {
    const guide = await readFile(join(import.meta.dirname, '../../../docs/RELATIONS.md'), 'utf8');
    const [, section = ''] = guide.split('\n## Users\n');
    const [, declaration = ''] = /```json\n(.*?)```/s.exec(section) ?? [];
    const [, query = ''] = /```graphql\n(.*?)```/s.exec(section) ?? [];
    await using door = await openDoor({
      module: `export default ${declaration}`,
      env: { GRAPHQL_USERS: 'database' },
    });
    await ask(door.url, 'mutation { createUser(name: "Ann", email: "ann@x") { phone } }');
    assert.deepEqual((await ask(door.url, query)).body, {
      data: { users: [{ name: 'Ann', phone: null, team: null }], usersConnection: { edges: [] } },
    });
  });

  test('need the scopes of what an operation selects', async () => {
    const tokens = Object.fromEntries(
      Object.entries({
        users: ['users:read'],
        writer: ['users:write'],
        both: ['users:read', 'books:read'],
        books: ['books:read'],
      }).map(([name, scopes]) => [name, { secret: `${name}-0123456789012345`, scopes }]),
    );
    const config = { relations: STAFF, api: { required: 'all', tokens } };
    await using door = await openDoor({ module: moduleOf(config), env: { GRAPHQL_USERS: 'database' } });
    const create = (fields: string) => `mutation { createUser(name: "A", email: "a@x") { ${fields} } }`;
    for (const [query, allowed] of [
      ['{ users { phone } }', ['users', 'both']],
      ['{ usersConnection { totalCount } }', ['users', 'both']],
      ['{ users { books { title } } }', ['both']],
      ['{ usersConnection { edges { node { books { title } } } } }', ['both']],
      ['{ books { owner { phone } } }', ['both']],
      [create('id name'), ['writer']],
      [create('phone'), []],
    ] as const) {
      for (const name of Object.keys(tokens)) {
        const headers = { authorization: `Bearer ${name}-0123456789012345` };
        const { status } = await ask(door.url, query, headers);
        assert.equal(status, allowed.includes(name as never) ? 200 : 403, `${name} ${query}`);
      }
    }
  });

  test('do not start with names that they need', async () => {
    const config = {
      relations: { ...STAFF, edges: { one: 'userEdge', columns: { phone: users.columns.phone } } },
    };
    const problem = await captureError(
      openDoor({ module: moduleOf(config), env: { GRAPHQL_USERS: 'database' } }),
    );
    assert.match(problem, /makes "UserEdge" in GraphQL/);
  });
});
