import assert from 'node:assert/strict';
import { test } from 'node:test';
import { raise, same, schemaOf, type TypeCode, ticks } from './compare.ts';

/**
 * A tree whose fields take as many microtasks as their names say: `e2` fails after two, `v3` is there after three.
 * `need` may not be null, `may` may, and lists hold one or the other.
 */
const names = ['e', 'v', 'n'].flatMap((kind) => Array.from({ length: 9 }, (_, count) => `${kind}${count}`));
const leaves = names.map((name) => `${name}: String ${name}_: String!`).join(' ');
const nodes = Array.from(
  { length: 9 },
  (_, n) => `may${n}: Node need${n}: Node! all${n}: [Node] some${n}: [Node!] flow${n}: [Node!]`,
);
const sdl = `type Query { may: Node need: Node! ${leaves} ${nodes.join(' ')} }
  type Mutation { may1: Node flow1: [Node!] ${leaves} }
  type Node { ${leaves} ${nodes.join(' ')} }`;

const code: Required<Pick<TypeCode, 'fields'>> & {
  fields: Record<string, NonNullable<TypeCode['fields']>[string]>;
} = {
  fields: {},
};
for (const name of names) {
  const count = Number(name.slice(1));
  for (const field of [name, `${name}_`]) {
    code.fields[field] = (_source, _args, { calls }, { path }) => {
      const value = () => {
        calls.push(`${path.key} settled`);
        if (name.startsWith('e')) raise(`${field} failed`);
        return name.startsWith('n') ? null : field;
      };
      return count === 0 ? value() : ticks(count, value);
    };
  }
}
for (let count = 0; count < 9; count++) {
  const later = (value: () => unknown) => (count === 0 ? value() : ticks(count, value));
  code.fields[`may${count}`] = () => later(() => ({}));
  code.fields[`need${count}`] = () => later(() => ({}));
  code.fields[`all${count}`] = () => [later(() => ({})), {}];
  code.fields[`flow${count}`] = () => ({
    async *[Symbol.asyncIterator]() {
      if (count > 0) await ticks(count, () => {});
      yield {};
      yield {};
    },
  });
  code.fields[`some${count}`] = () => [{}, later(() => ({}))];
}
const { may1, flow1 } = code.fields;
assert.ok(may1 !== undefined && flow1 !== undefined);
const steps = Object.fromEntries(
  names.flatMap((name) => [name, `${name}_`]).map((name) => [name, code.fields[name]]),
);
const schema = schemaOf(sdl, {
  Query: code,
  Node: code,
  Mutation: { fields: { ...steps, may1, flow1 } as typeof code.fields },
});

test('of two errors the one that is there first is told first', async () => {
  for (let first = 0; first < 9; first++) {
    for (let second = 0; second < 9; second++) {
      const { result } = await same(schema, `{ e${first} may${second} { e${second} } }`);
      assert.equal(result.errors?.length, 2);
    }
  }
});

test('of two errors in one object one makes it null, and the other is told only if it is first', async () => {
  const told = new Set<number | undefined>();
  for (let need = 0; need < 9; need++) {
    for (let may = 0; may < 9; may++) {
      const { result } = await same(schema, `{ may1 { v1 e${may} e${need}_ } }`);
      told.add(result.errors?.length);
    }
  }
  assert.deepEqual([...told].sort(), [1, 2]);
});

test('an error that rises through objects is as late as in GraphQL.js', async () => {
  const told = new Set<number | undefined>();
  for (let depth = 0; depth < 5; depth++) {
    const rises = `${'need1 { '.repeat(depth)} e1_ ${'}'.repeat(depth)}`;
    for (let other = 0; other < 9; other++) {
      for (const deep of [`e${other}`, `may1 { e${other} }`, `need2 { n${other}_ }`, `all1 { e${other} }`]) {
        const { result } = await same(schema, `{ may { v0 ${deep} ${rises} } may1 { ${rises} x: ${deep} } }`);
        told.add(result.errors?.length);
      }
    }
  }
  assert.ok(told.size > 1);
});

test('an error that rises through lists is as late as in GraphQL.js', async () => {
  for (const list of ['all0', 'all1', 'all3', 'some0', 'some1', 'some3']) {
    for (let other = 0; other < 9; other++) {
      await same(schema, `{ may1 { e${other} ${list} { e1_ } } e${other} }`);
      await same(schema, `{ may1 { e${other} ${list} { e1_ e2 e3 n${other} } } e${other} }`);
      await same(schema, `{ may1 { need1 { e${other}_ } some1 { some0 { n0_ e${other}_ } } } }`);
    }
  }
});

test('an error that rises through streams is as late as in GraphQL.js', async () => {
  // Nothing makes the result complete before a stream has ended: GraphQL.js would leave rejections unhandled then.
  for (let first = 0; first < 4; first++) {
    for (let other = 0; other < 16; other++) {
      const also = other < 9 ? `e${other}` : `may${other - 8} { e8 }`;
      await same(schema, `{ may1 { ${also} need1 { flow${first} { e1_ } } } ${also} }`);
      await same(schema, `{ ${also} need1 { flow${first} { need1 { n1_ } e3 } ${also} } }`);
      await same(schema, `{ may1 { a: need1 { all1 { flow${first} { e2_ v1 } } } b: ${also} } }`);
    }
  }
});

test('what is given up goes on for as long as in GraphQL.js', async () => {
  const calls = new Set<number>();
  for (let other = 0; other < 9; other++) {
    const deep = `may${other} { may${other} { may1 { v1 may1 { v1 } } } }`;
    const given = await same(schema, `{ e2_ ${deep} }`);
    assert.equal(given.result.data, null);
    calls.add(given.calls.length);
    await same(schema, `{ need1 { need1 { e1_ ${deep} } ${deep} } ${deep} }`);
  }
  assert.ok(calls.size > 1);
});

test('what is given up ends, and the next step begins, in the same microtask as in GraphQL.js', async () => {
  // Something of it is there in each microtask.
  const all = 'v0 v1 v2 v3 v4 v5 v6 v7 v8';
  const left = `x: may1 { e1_ may1 { ${all} a: may1 { ${all} may1 { ${all} } } } may8 { ${all} } }`;
  for (let count = 0; count < 9; count++) {
    for (const other of [
      `v${count}`,
      `n${count}`,
      `e${count}`,
      `may1 { v${count} }`,
      'flow1 { v1 }',
      'flow1 { v0 }',
    ]) {
      await same(schema, `{ ${left} y: ${other} }`);
      await same(schema, `mutation { ${left} y: ${other} z: v${count} w: v0 last: v1 }`);
    }
  }
});
