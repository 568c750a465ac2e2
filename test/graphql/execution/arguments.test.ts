import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ValueNode } from 'graphql';
import { type Resolver, raise, same, schemaOf } from './compare.ts';

const echo: Resolver = (_source, args, { calls }, { fieldName }) => {
  calls.push(fieldName);
  return JSON.stringify(args);
};

let reads = 0;
const schema = schemaOf(
  `
  scalar Stamp
  scalar Picky
  enum Color { RED GREEN }
  input In { a: Int! b: String = "bee" stamp: Stamp colors: [Color!] in: In }
  input One @oneOf { x: Int y: String }
  type Query {
    int(value: Int): String  needInt(value: Int!): String  defInt(value: Int = 3): String  needDef(value: Int! = 4): String
    list(value: [Int!]): String  nested(value: [[Int]]): String  in(value: In): String  one(value: One): String
    color(value: Color): String  stamp(value: Stamp): String  stamps(value: [Stamp], other: Int = 1): String
    picky(value: Picky): String  two(first: Int!, second: String = "s"): String  strict(value: Int!): String!
    property(value: Int!): String  method(value: Int = 1, stamp: Stamp): String  own: Query ownList: [Query]
  }`,
  {
    Query: {
      fields: {
        ...Object.fromEntries(
          'int needInt defInt needDef list nested in one color stamp stamps picky two strict'
            .split(' ')
            .map((name) => [name, echo]),
        ),
        own: (_source, _args, { calls }) => ({
          get property() {
            calls.push('property read');
            return 'a property';
          },
          method: (args: unknown) => JSON.stringify(args),
        }),
        ownList: () => [{ property: 'a' }, { property: 'b' }],
      },
    },
    Stamp: {
      scalar: {
        coerceInputLiteral: (node) => {
          reads++;
          return `literal ${(node as ValueNode & { readonly value?: string }).value}`;
        },
        coerceInputValue: (value) => `value ${String(value)}`,
      },
    },
    Picky: {
      scalar: { coerceInputLiteral: () => raise('too picky'), coerceInputValue: () => raise('too picky') },
    },
  },
);

/** Literals and variables for each argument, right and wrong. */
const literals: Readonly<Record<string, readonly string[]>> = {
  int: ['1', 'null', '"1"', '1.5', '$int', '$need', '$text', '2147483648'],
  needInt: ['1', 'null', '"x"', '$int', '$need', '$missing'],
  defInt: ['1', 'null', '$int', '$missing'],
  needDef: ['1', 'null', '$int', '$need', '$missing'],
  strict: ['1', 'null', '"x"', '$int'],
  list: ['[1]', '1', '[1, null]', 'null', '[$int]', '[$missing, 1]', '$int', '["x"]'],
  nested: ['[[1], null]', '1', '[[$int]]', '[["x"]]'],
  in: [
    '{a: 1}',
    '{}',
    '{a: 1, z: 1}',
    '{a: $int}',
    '{a: 1, in: {a: 2, colors: [RED]}}',
    '{a: 1, colors: RED, b: null}',
    '{a: 1, b: $missing}',
    '{a: "x"}',
    '5',
  ],
  one: ['{x: 1}', '{x: 1, y: "a"}', '{x: null}', '{}', '{x: $int}', '{y: $missing}'],
  color: ['RED', 'BLUE', '"RED"', 'null', '$text'],
  picky: ['1', 'null', '$int', '{a: 1}'],
};
const variables = [{ int: 7, need: 8, text: 'RED' }, { int: null, need: 1 }, { need: 2 }];
const head = 'query ($int: Int, $need: Int!, $text: String, $missing: Int)';

describe('an argument', () => {
  for (const [field, values] of Object.entries(literals)) {
    test(field, async () => {
      for (const value of [...values, undefined]) {
        const asked = value === undefined ? field : `${field}(value: ${value})`;
        for (const given of variables) {
          const use =
            'used: int(value: $int) u2: int(value: $need) u3: color(value: $text) u4: int(value: $missing)';
          await same(schema, `${head} { before: int x: ${asked} after: int ${use} }`, { variables: given });
        }
      }
    });
  }
});

test('a wrong argument of a field without a resolver is told, and the property is not read', async () => {
  const { result, calls } = await same(schema, '{ own { property(value: "x") } int }');
  assert.match(String(result.errors?.[0]?.message), /Argument "Query.property\(value:\)" has invalid value/);
  assert.deepEqual(calls, ['int']);
  const missing = await same(schema, '{ own { property } ownList { property(value: null) } }');
  assert.equal(missing.result.errors?.length, 3);
  const right = await same(schema, '{ own { property(value: 1) method } ownList { property(value: 1) } }');
  assert.equal(right.result.errors, undefined);
});

test('a literal of a program’s own scalar is read in each run, and as often as in GraphQL.js', async () => {
  const queries: Readonly<Record<string, number>> = {
    '{ stamp(value: "a") }': 1,
    '{ stamp(value: null) int(value: 1) color(value: RED) }': 0,
    '{ own { method(stamp: "a") } }': 1,
    '{ stamps(value: ["a", "b"]) }': 2,
    '{ in(value: {a: 1, stamp: "a"}) a: stamp(value: "a") }': 2,
  };
  for (const [query, count] of Object.entries(queries)) {
    reads = 0;
    await same(schema, query);
    // Once in GraphQL.js and twice in ours.
    assert.equal(reads, 3 * count, query);
  }
});

test('what is wrong with variables is told before anything runs', async () => {
  const query = 'query ($in: In!, $one: One, $color: [Color!] = [RED]) { in(value: $in) one(value: $one) }';
  const good = { in: { a: 1 } };
  const wrong = [
    {},
    { in: null },
    { in: { a: 'x' } },
    { in: { a: 1, z: 2 } },
    { ...good, one: {} },
    { ...good, one: { x: 1, y: '2' } },
    { ...good, color: 'BLUE' },
  ];
  for (const variables of [good, ...wrong]) {
    const { calls } = await same(schema, query, { variables });
    if (variables !== good) assert.deepEqual(calls, []);
  }
});
