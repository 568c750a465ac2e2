import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventRefusedError, EventTypes } from './event-types.ts';

const typesOf = (schema: unknown) =>
  new EventTypes({
    eventType: (name) => ({
      seq: 1,
      name,
      description: '',
      schema,
      example: undefined,
      createdAt: 0,
      updatedAt: 0,
    }),
  });

test('data that do not fit are refused, each with its place', async () => {
  const types = typesOf({
    type: 'object',
    required: ['id'],
    properties: {
      id: { type: 'integer' },
      tags: { type: 'array', items: { type: 'string', pattern: '^[a-z]+$' } },
    },
  });
  await types.check('a', { id: 1, tags: ['x'] });
  for (const [data, pointer] of [
    [{}, ''],
    [{ id: 'x' }, '/id'],
    [{ id: 1, tags: ['x', 'Y'] }, '/tags/1'],
  ] as const)
    await assert.rejects(
      async () => types.check('a', data),
      (error) => {
        assert.ok(error instanceof EventRefusedError);
        assert.equal(error.faults[0]?.pointer, pointer);
        return true;
      },
    );
});

// Without its bound each of these would take minutes, and the test would end at its own limit.
const SLOW: Readonly<Record<string, readonly [schema: unknown, data: unknown]>> = {
  'an expression that tries everything': [{ pattern: '^(a+)+$' }, `${'a'.repeat(64)}!`],
  'many items that are compared with each other': [
    { uniqueItems: true },
    Array.from({ length: 80_000 }, (_, i) => [i]),
  ],
  'many branches for each of many items': [
    { items: { anyOf: Array.from({ length: 2_000 }, (_, i) => ({ minimum: 1_999 - i })) } },
    Array.from({ length: 80_000 }, () => 0),
  ],
  'a schema that applies itself twice at each level': [
    {
      $defs: {
        0: false,
        ...Object.fromEntries(
          Array.from({ length: 60 }, (_, i) => [
            i + 1,
            { anyOf: [{ $ref: `#/$defs/${i}` }, { $ref: `#/$defs/${i}` }] },
          ]),
        ),
      },
      $ref: '#/$defs/60',
    },
    1,
  ],
};

for (const [what, [schema, data]] of Object.entries(SLOW)) {
  test(`a check ends in time: ${what}`, async () => {
    const types = typesOf(schema);
    await assert.rejects(
      async () => types.check('a', data),
      (error) => error instanceof EventRefusedError && /within 50 ms/.test(error.faults[0]?.detail ?? ''),
    );
    // The next check is not affected.
    await assert.rejects(async () => types.check('a', data), EventRefusedError);
  });
}

test('time in which the thread did not run is not time of a check', async (t) => {
  // Takes longer than 50 ms on any machine: each of 4,000 items is compared with all others.
  const types = typesOf({ uniqueItems: true });
  const data = Array.from({ length: 4_000 }, (_, i) => [i]);
  await assert.rejects(async () => types.check('a', data), EventRefusedError);
  t.mock.method(process, 'threadCpuUsage', () => ({ user: 0, system: 0 }));
  await types.check('a', data);
});

test('a type is read again after a time, and compiled again only once it has changed', async (t) => {
  let schema: object = { type: 'integer' };
  let [reads, updatedAt] = [0, 1];
  const types = new EventTypes({
    eventType(name) {
      reads++;
      return { seq: 1, name, description: '', schema, example: undefined, createdAt: 0, updatedAt };
    },
  });
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  await types.check('a', 1);
  // Without a change of its time it counts as the same.
  schema = { type: 'string' };
  now = 2_000;
  await types.check('a', 1);
  updatedAt = 2;
  now = 4_000;
  await types.check('a', 'x');
  await assert.rejects(async () => types.check('a', 1), EventRefusedError);
  assert.equal(reads, 3);
});
