import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { GraphQLIsTypeOfFn } from 'graphql';
import { type Context, raise, same, schemaOf, type TypeCode, ticks } from './compare.ts';

type IsTypeOf = GraphQLIsTypeOfFn<unknown, Context>;

const kindOf = (value: unknown) => (value as { readonly kind?: string } | null)?.kind;
const is =
  (name: string): IsTypeOf =>
  (value, { calls }, { path }) => {
    calls.push(`${name}? ${path.key}`);
    return kindOf(value) === name;
  };
const later =
  (count: number, answer: IsTypeOf): IsTypeOf =>
  (...given) =>
    ticks(count, () => answer(...given) as boolean);
const rejects =
  (count: number): IsTypeOf =>
  (_value, { calls }) => {
    calls.push('rejects');
    return ticks(count, () => raise('isTypeOf rejected'));
  };
const throws: IsTypeOf = () => raise('isTypeOf threw');
const never: IsTypeOf = () => false;
// biome-ignore lint/suspicious/noThenProperty: a promise of another make, whose then gives nothing.
const bare = (value: unknown) => ({ then: (use: (given: unknown) => void) => void use(value) });

/** What Dog and Cat answer, in the order in which they are asked. */
const answers: Readonly<Record<string, readonly [dog: IsTypeOf | undefined, cat: IsTypeOf | undefined]>> = {
  atOnce: [is('Dog'), is('Cat')],
  later: [later(2, is('Dog')), later(1, is('Cat'))],
  mixed: [later(3, is('Dog')), is('Cat')],
  mixedTheOtherWay: [is('Dog'), later(3, is('Cat'))],
  rejectsBeforeAMatch: [rejects(1), is('Cat')],
  rejectsLateBeforeAMatch: [rejects(20), is('Cat')],
  rejectsBesideALaterMatch: [rejects(3), later(1, is('Cat'))],
  bothReject: [rejects(1), rejects(20)],
  rejectsThenThrows: [rejects(2), throws],
  throwsFirst: [throws, is('Cat')],
  throwsAfterAMatch: [is('Dog'), throws],
  never: [never, never],
  neverLater: [later(1, never), later(2, never)],
  nobodyAnswers: [undefined, undefined],
  oneAnswers: [undefined, is('Cat')],
  truthy: [() => 'yes' as never, is('Cat')],
};

/** What resolveType gives. */
const names: Readonly<Record<string, TypeCode['resolveType']>> = {
  name: (value) => kindOf(value),
  nameLater: (value) => ticks(2, () => kindOf(value)),
  nameRejected: () => ticks(1, () => raise('resolveType rejected')),
  nameThrown: () => raise('resolveType threw'),
  nothing: () => undefined,
  nothingLater: () => ticks(1, () => undefined),
  unknown: () => 'Nobody',
  scalar: () => 'String',
  interface: () => 'Pet',
  stranger: () => 'Stranger',
  strangerLater: () => ticks(2, () => 'Stranger'),
  object: () => ({ name: 'Dog' }) as never,
  number: () => 5 as never,
};

const sdl = `
  interface Pet { name: String needed: String! }
  type Dog implements Pet { name: String needed: String! barks: Boolean friend: Pet }
  type Cat implements Pet { name: String needed: String! meows: Boolean friend: Pet }
  type Stranger { name: String }
  union Any = Dog | Cat
  type Query { dog: Pet cat: Pet! none: Pet anyDog: Any anyCat: Any! pets: [Pet] strict: [Pet!] anys: [Any!]! laterCat: Pet typed: Pet
    own: Dog ownWrong: Dog! ownList: [Dog] fields: Query }`;

const dog = {
  kind: 'Dog',
  name: 'Rex',
  needed: 'bone',
  barks: true,
  friend: { kind: 'Cat', name: 'Tom', needed: null },
};
const cat = { kind: 'Cat', name: 'Tom', needed: 'milk', meows: () => ticks(1, () => true), friend: dog };
const query: TypeCode = {
  fields: {
    dog: () => dog,
    cat: () => cat,
    anyDog: () => dog,
    anyCat: () => ticks(1, () => cat),
    pets: () => [dog, ticks(1, () => cat), null, { kind: 'Fish' }],
    strict: () => [cat, cat, dog],
    anys: () => [dog, { __typename: 'Cat', name: 'by its name' }],
    laterCat: () => ticks(3, () => cat),
    typed: () => ({ ...dog, __typename: 'Dog' }),
    own: () => dog,
    ownWrong: () => cat,
    ownList: () => [dog, cat, ticks(1, () => dog)],
    fields: () => ({}),
  },
};
const all = `... on Dog { barks name friend { name needed } } ... on Cat { meows } ... on Pet { needed } __typename`;
const queries = [
  ...['dog', 'cat', 'anyDog', 'anyCat', 'pets', 'strict', 'anys', 'laterCat', 'typed'].map(
    (name) => `${name} { ${all} }`,
  ),
  'own { name barks } ownList { name }',
  'fields { ownWrong { name } }',
];

describe('the type of a value', () => {
  for (const [name, [isDog, isCat]] of Object.entries(answers)) {
    const schema = schemaOf(sdl, {
      Query: query,
      Dog: { ...(isDog && { isTypeOf: isDog }) },
      Cat: { ...(isCat && { isTypeOf: isCat }) },
    });
    test(`as isTypeOf says: ${name}`, async () => {
      for (const asked of queries) await same(schema, `{ fields { ${asked} } }`);
      await same(schema, `{ ${queries.join(' ')} }`);
    });
  }

  for (const [name, resolveType] of Object.entries(names)) {
    for (const isTypeOf of [undefined, is('Dog'), later(2, is('Dog')), rejects(2)]) {
      const schema = schemaOf(sdl, {
        Query: query,
        Dog: { ...(isTypeOf && { isTypeOf }) },
        Pet: { ...(resolveType && { resolveType }) },
        Any: { ...(resolveType && { resolveType }) },
      });
      test(`as resolveType says: ${name}${isTypeOf === undefined ? '' : ', then isTypeOf'}`, async () => {
        for (const asked of queries) await same(schema, `{ fields { ${asked} } }`);
        await same(schema, `{ ${queries.join(' ')} }`);
      });
    }
  }
});

test('a rejected isTypeOf beside one that matches is nobody’s error', async () => {
  const schema = schemaOf(sdl, { Query: query, Dog: { isTypeOf: rejects(1) }, Cat: { isTypeOf: is('Cat') } });
  const { result, calls } = await same(schema, '{ cat { name } }');
  assert.deepEqual([result.data, result.errors], [{ cat: { name: 'Tom' } }, undefined]);
  assert.deepEqual(calls, ['rejects', 'Cat? cat', 'Cat? cat']);
});

test('promises of another make are waited for', async () => {
  const schema = schemaOf(sdl, {
    Query: { fields: { dog: () => bare(dog), cat: () => bare(null) } },
    Pet: { resolveType: (value) => ticks(0, () => kindOf(value)) },
  });
  await same(schema, '{ dog { name barks: __typename } }');
  await same(schema, '{ dog { name } cat { name } }');
});

test('the info of the field is what types are asked with, also for items of a list', async () => {
  const infos: unknown[] = [];
  const schema = schemaOf(
    'interface Pet { name: String } type Dog implements Pet { name: String } type Query { pets: [Pet] own: Query lists: [[Dog]] }',
    {
      Query: {
        fields: {
          pets: (_source, _args, _context, info) => {
            infos.push(info);
            return [dog, dog];
          },
          own: () => ({ lists: [[dog], [dog, dog]] }),
        },
      },
      Pet: {
        resolveType: (_value, { calls }, info, abstract) => {
          infos.push(info);
          calls.push(JSON.stringify([info.path, abstract.name, info.fieldName, info.parentType.name]));
          return 'Dog';
        },
      },
      Dog: {
        isTypeOf: (_value, { calls }, info) => {
          infos.push(info);
          calls.push(JSON.stringify([info.path, String(info.returnType)]));
          return true;
        },
      },
    },
  );
  await same(schema, '{ pets { name } }');
  // Once through GraphQL.js and twice through ours, and in each run it is one object.
  assert.deepEqual([infos.length, new Set(infos).size], [15, 3]);
  infos.length = 0;
  await same(schema, '{ own { lists { name } } }');
  assert.deepEqual([infos.length, new Set(infos).size], [9, 3]);
});
