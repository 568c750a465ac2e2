import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { GraphQLError } from 'graphql';
import { type Resolver, raise, same, schemaOf, ticks } from './compare.ts';

/** Every way in which a value can be missing. */
const ways: Readonly<Record<string, Resolver>> = {
  none: () => null,
  absent: () => undefined,
  thrown: () => raise('thrown'),
  given: () => new Error('given'),
  laterNone: () => ticks(1, () => null),
  rejected: () => ticks(1, () => raise('rejected')),
  laterGiven: () => ticks(2, () => new Error('later given')),
  coded: () => {
    throw new GraphQLError('coded', { extensions: { code: 'TEAPOT' } });
  },
  text: () => {
    throw 'only a text';
  },
  nothing: () => {
    throw undefined;
  },
  located: () => {
    throw new GraphQLError('located', { path: ['elsewhere', 3] });
  },
};
const leaves = Object.keys(ways)
  .map((way) => `${way}: String ${way}_: String!`)
  .join(' ');
const sdl = `directive @experimental_disableErrorPropagation on QUERY | MUTATION | SUBSCRIPTION
  type Query { a: A, need: A!, later: A, laterNeed: A!, list: [A!], lists: [[A!]!] ok: String ${leaves} }
  type A { a: A, need: A!, later: A, laterNeed: A!, list: [A!], lists: [[A!]!] ok: String! ${leaves} }`;
const fields: Record<string, Resolver> = {
  a: () => ({}),
  need: () => ({}),
  later: () => ticks(1, () => ({})),
  laterNeed: () => ticks(1, () => ({})),
  list: () => [{}, ticks(2, () => ({}))],
  lists: () => [[{}], ticks(1, () => [{}, {}])],
  ok: () => 'ok',
};
for (const [name, resolve] of Object.entries(ways)) {
  fields[name] = resolve;
  fields[`${name}_`] = resolve;
}
const schema = schemaOf(sdl, { Query: { fields }, A: { fields } });

describe('a value that is missing', () => {
  for (const way of Object.keys(ways)) {
    test(way, async () => {
      const { result } = await same(schema, `{ ok a { ok ${way} } }`);
      assert.deepEqual(result.data, { ok: 'ok', a: { ok: 'ok', [way]: null } });
      const places = ['a', 'need', 'later', 'laterNeed', 'list', 'lists'];
      for (const place of places) {
        await same(schema, `{ ok ${place} { ok ${way}_ } }`);
        await same(schema, `{ ok a { ok ${place} { ok need { ok laterNeed { ${way} ${way}_ ok } } } } }`);
        await same(schema, `{ ok need { ${places.map((all) => `${all} { ${way}_ ${way} }`).join(' ')} } }`);
      }
    });
  }
});

test('null where none may be is told with the words of GraphQL.js', async () => {
  const { result } = await same(schema, '{ a { none_ } }');
  assert.equal(result.errors?.[0]?.message, 'Cannot return null for non-nullable field A.none_.');
});

test('all errors of a tree, in their order', async () => {
  const all = Object.keys(ways).join(' ');
  const { result } = await same(schema, `{ ${all} a { ${all} later { ${all} } list { ${all} } } ${all} }`);
  assert.ok((result.errors?.length ?? 0) > 20);
});

test('an error stays where it is if the operation says so', async () => {
  const directive = '@experimental_disableErrorPropagation';
  const { result } = await same(schema, `query ${directive} { a { none_ ok need { thrown_ ok } } }`);
  assert.deepEqual(result.data, { a: { none_: null, ok: 'ok', need: { thrown_: null, ok: 'ok' } } });
  assert.equal(result.errors?.length, 2);
  const all = Object.keys(ways).map((way) => `${way}_`);
  await same(schema, `query ${directive} { ${all.join(' ')} list { ${all.join(' ')} } lists { none_ } }`);
  await same(schema, `query A { a { none_ } } query B ${directive} { a { none_ } }`, { operationName: 'A' });
  await same(schema, `query A { a { none_ } } query B ${directive} { a { none_ } }`, { operationName: 'B' });
});
