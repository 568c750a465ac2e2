import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GraphQLSchema, parse, printSchema, validate, validateSchema } from 'graphql';
import type { RelationsData } from '../../config/schema/declaration.ts';
import { readRelations } from '../../config/schema/relations.ts';
import { usersSchema } from '../users-schema.ts';
import { LazySchema } from './lazy.ts';
import { relationResolvers } from './resolvers.ts';
import { relationsSchema } from './schema.ts';

const NO_USERS = { all: () => [], byId: () => undefined, add: () => assert.fail() };
const builtIn = usersSchema(NO_USERS, { subscribe: () => assert.fail() });

function schemaOf(data: RelationsData, extendsUsers = false): GraphQLSchema {
  const problems: string[] = [];
  const relations = readRelations({ value: data, path: 'relations' }, problems);
  assert.deepEqual(problems, []);
  const byName = new Map(relations.map((relation) => [relation.name, relation]));
  return relationsSchema(builtIn, byName, relationResolvers({ extendsUsers }));
}

/** Each relation refers to the one before it. */
function chained(count: number): RelationsData {
  return Object.fromEntries(
    Array.from({ length: count }, (_, i) => [
      `r${i}s`,
      {
        columns: {
          name: { type: 'text', max: 40 },
          kind: { type: 'enum', values: ['a', 'b'] },
          ...(i === 0 ? {} : { before: { type: 'reference', to: `r${i - 1}s`, inverse: 'after' } }),
        },
      },
    ]),
  ) as RelationsData;
}

test('types are made when a document asks for them', () => {
  const schema = schemaOf(chained(200));
  assert.ok(schema instanceof LazySchema);
  assert.equal(schema.types.made, 0);
  const document = parse(`query ($where: R7Where) {
    r7s(where: $where, orderBy: { name: ASC }) { name before { kind } after(limit: 3) { name } }
  }`);
  assert.deepEqual(validate(schema, document), []);
  const { made } = schema.types;
  assert.ok(made > 0 && made < 30, String(made));
  const unknown = validate(schema, parse('{ r7 { name } r8s { nam } }'));
  assert.deepEqual(
    unknown.map(({ message }) => message),
    [
      'Argument "Query.r7(id:)" of type "ID!" is required, but it was not provided.',
      'Cannot query field "nam" on type "R8". Did you mean "name"?',
    ],
  );
});

test('a lazy schema is the same as one whose types are all made', () => {
  const schema = schemaOf({
    ...chained(3),
    tags: {
      key: ['r0_id', 'label'],
      columns: {
        r0: { type: 'reference', to: 'r0s' },
        label: { type: 'text', max: 4 },
        order: { type: 'enum', values: ['x'] },
        other: { type: 'enum', values: ['not a name'] },
        small: { type: 'integer', min: 0, max: 9 },
        big: { type: 'bigint', nullable: true },
        owner: { type: 'reference', to: 'users', nullable: true },
      },
      changes: false,
    },
  });
  const eager = new GraphQLSchema({ ...schema.toConfig(), assumeValid: false });
  assert.deepEqual(validateSchema(eager), []);
  assert.equal(printSchema(eager), printSchema(schema));
  const text = printSchema(schema);
  for (const line of [
    'tag(r0_id: SafeInt!, label: String!): Tag',
    'order: TagOrderValue!',
    'other: String!',
    'small: Int!',
    'big: BigInt\n',
    'r0: R0!',
    'owner: User\n',
    'before: R0!',
    'input TagOrder @oneOf {',
  ])
    assert.ok(text.includes(line), line);
  assert.ok(!text.includes('tagCreated'));
  assert.ok(text.startsWith(printSchema(builtIn).slice(0, 100)));
});
