import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as v from 'valibot';
import { readObject } from './fields.ts';

function read<S extends Parameters<typeof readObject>[0]>(schema: S, value: unknown) {
  const problems: string[] = [];
  return { read: readObject(schema, { value, path: 'm: a' }, problems), problems };
}

const inner = v.object({ d: v.string('must be a text') }, 'must be an object with d');
const schema = v.object(
  {
    a: v.string('must be a text'),
    b: v.optional(v.number('must be a number')),
    c: v.optional(v.array(inner, 'must be an array')),
    m: v.optional(v.map(v.string(), v.string('must be a text'))),
  },
  'must be an object with a',
);

test('an object is read as its schema says, and what is undefined is not there', () => {
  assert.deepEqual(read(schema, { a: 'x', b: undefined }), { read: { a: 'x' }, problems: [] });
  class Instance {
    readonly a = 'x';
  }
  assert.deepEqual(read(schema, new Instance()), { read: { a: 'x' }, problems: [] });
});

test('all that is wrong is told at once, each by its place', () => {
  const value = { b: 'x', c: [{ d: 'x' }, { d: 1 }], m: new Map([['k', 1]]), e: 1, aa: 1 };
  assert.deepEqual(read(schema, value), {
    read: undefined,
    problems: [
      'm: a has an unknown key "e"; did you mean a?',
      'm: a has an unknown key "aa"; did you mean a?',
      'm: a.a must be a text',
      'm: a.b must be a number',
      'm: a.c[1].d must be a text',
      'm: a.m["k"] must be a text',
    ],
  });
});

test('what is no object is told by the message of the schema', () => {
  for (const value of [null, undefined, 'x', 1, [], () => 1, new Map()]) {
    assert.deepEqual(read(schema, value).problems, ['m: a must be an object with a']);
  }
});

test('only the own keys of an object count, whatever they are called', () => {
  assert.deepEqual(read(schema, Object.create({ a: 'x' })).problems, ['m: a.a must be a text']);
  const named = JSON.parse('{"a": "x", "__proto__": {"b": 1}, "constructor": 1}');
  assert.deepEqual(read(schema, named).problems, [
    'm: a has an unknown key "__proto__"',
    'm: a has an unknown key "constructor"',
  ]);
});

test('a schema that has no message of its own does not show the value', () => {
  const silent = v.object(
    {
      text: v.pipe(v.string(), v.maxLength(3)),
      choice: v.picklist(['a', 'b']),
      either: v.union([v.strictObject({ env: v.string() }), v.literal('x')]),
      never: v.never(),
    },
    'must be an object',
  );
  const { problems } = read(silent, {
    text: 'hunter2',
    choice: 'hunter2',
    either: { hunter2: 1 },
    never: 'hunter2',
  });
  assert.equal(problems.length, 4);
  assert.doesNotMatch(problems.join('\n'), /hunter2/);
});
