import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createFindOperation } from '@portico/graphql-plans';
import { buildSchema } from 'graphql';
import { defaultsOf } from '../../src/config/options/options.ts';
import { usersSchema } from '../../src/graphql/users-schema.ts';
import { LocalUserFeed } from '../../src/relations/events.ts';
import { MemoryUserStore } from '../../src/relations/user-stores.ts';
import { heapInUse } from '../support/collect-garbage.ts';
import { rounds } from '../support/proof-settings.ts';

const LIMITS = defaultsOf('graphql');

const FLOOD = rounds(10_000);
/** Milliseconds of processor time that a refusal may cost: several times what the most expensive one takes. */
const MAX_CPU = 15;

const repeat = (count: number, part: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => part(index)).join(' ');

function finder(schema = usersSchema(new MemoryUserStore(new LocalUserFeed(), 10), new LocalUserFeed())) {
  const options = {
    schema,
    limits: LIMITS,
    maxCacheBytes: 32 * 1024 * 1024,
    metrics: undefined,
  };
  const find = createFindOperation({ ...options, introspection: true, suggestions: true });
  return (query: string) => find({ query, operationName: undefined, variables: undefined });
}

describe('a refusal costs little', () => {
  const doubling = repeat(70, (i) => `fragment F${i} on Query { ...F${i + 1} ...F${i + 1} }`);
  /** Documents of up to 90 kB, each of which is another one by its number. */
  const floods: Readonly<Record<string, (number: number) => string>> = {
    tokens: (n) => `{ x${n}: users { ${'id '.repeat(30_000)} } }`,
    brackets: (n) => `{ x${n}: user(id: ${'['.repeat(80_000)}`,
    braces: (n) => `{ x${n}: ${'users { '.repeat(10_000)}`,
    depth: (n) => `{ x${n}: ${'deep { '.repeat(300)} leaf ${'}'.repeat(300)} }`,
    aliases: (n) => `{ ${repeat(320, (i) => `a${n}_${i}: __typename`)} }`,
    directives: (n) => `{ x${n}: leaf ${'@skip(if: false) '.repeat(140)} }`,
    'root fields': (n) => `{ x${n}: leaf ${'leaf '.repeat(990)} }`,
    'doubling fragments': (n) => `{ x${n}: leaf ...F0 } ${doubling} fragment F70 on Query { leaf }`,
    'circular fragments': (n) => `{ x${n}: leaf ...F0 } ${doubling} fragment F70 on Query { ...F0 }`,
    'unknown fields': (n) => `{ x${n}: deep { ${repeat(900, (i) => `lea${i}`)} } }`,
    'unknown fields, each on lines of its own': (n) =>
      `{ x${n}: deep { ${repeat(400, (i) => `lea${i}${'\n'.repeat(200)}`)} } }`,
    'unknown arguments': (n) => `{ x${n}: leaf(${repeat(300, (i) => `a${i}: 1`)}) }`,
    'unknown variables': (n) => `{ x${n}: leaf(${repeat(240, (i) => `a${i}: $v${i}`)}) }`,
    'unknown fragments': (n) => `{ x${n}: deep { ${repeat(300, (i) => `...F${i}`)} } }`,
    'unknown directives': (n) => `{ x${n}: leaf ${repeat(45, (i) => `@d${i}`)} }`,
    'an endless string': (n) => `{ x${n}: leaf(a: "${'\\u0041'.repeat(14_000)}`,
    'an endless comment': (n) => `{ x${n} #${'{'.repeat(90_000)}`,
  };
  const schema = buildSchema('type Query { leaf: String deep: Query }');
  for (const [title, flood] of Object.entries(floods)) {
    test(title, () => {
      const find = finder(schema);
      const costs = Array.from({ length: 60 }, (_, number) => {
        const query = flood(number);
        const before = process.threadCpuUsage();
        const found = find(query);
        const { user, system } = process.threadCpuUsage(before);
        assert.ok('errors' in found && found.errors.length <= 11);
        return (user + system) / 1_000;
      });
      // Other work of the machine only adds to a cost.
      const least = Math.min(...costs);
      assert.ok(least < MAX_CPU, `${least} ms`);
    });
  }
});

describe('a flood of documents', () => {
  const valid = (n: number) => `query Q${n} { a${n}: hello users { id name } }`;
  const wrong = (n: number) => `query Q${n} { nothing${n} }`;

  test('leaves what is remembered bounded, and the good ones in use remembered', async () => {
    const find = finder();
    const used = find('{ users { name } }');
    const before = heapInUse();
    const found = new Map<string, WeakRef<object>>();
    for (let n = 0; n < FLOOD; n++) {
      for (const query of [valid(n), wrong(n)]) {
        const operation = find(query);
        if ('run' in operation) await operation.run(undefined, undefined);
        found.set(query, new WeakRef(operation));
      }
      if (n % 100 === 0) assert.equal(find('{ users { name } }'), used);
    }
    const texts = [...found.keys()];
    // A reference that was just made holds on until the turn ends.
    await turn();
    const grown = heapInUse() - before;
    // Whatever is not remembered is gone; the rest of the growth is this test's own list.
    const alive = texts.filter((query) => found.get(query)?.deref() !== undefined);
    assert.ok(alive.filter((query) => query.includes('hello')).length >= 500);
    assert.ok(alive.filter((query) => query.includes('nothing')).length >= 20);
    assert.ok(grown < 32 * 1024 * 1024, `${grown} bytes`);
    assert.equal(find('{ users { name } }'), used);
  });

  test('wrong ones alone push no good one out', () => {
    const find = finder();
    const good = Array.from({ length: 500 }, (_, n) => find(valid(n)));
    for (let n = 0; n < FLOOD / 4; n++) find(wrong(n));
    for (let n = 0; n < FLOOD / 4; n++) find(`{ syntax ${n}`);
    for (const [n, operation] of good.entries()) assert.equal(find(valid(n)), operation);
  });

  test('of the costliest ones takes megabytes, not gigabytes', () => {
    const find = finder();
    const before = heapInUse();
    const deep = `${'...on User{'.repeat(190)}id${'}'.repeat(190)}`;
    for (let n = 0; n < 600; n++) assert.ok('run' in find(`query Q${n}{users{${deep}}}`));
    const grown = heapInUse() - before;
    assert.ok(grown < 80e6, `${grown} bytes`);
    // It is all still remembered here.
    assert.ok('run' in find('{ hello }'));
  });
});
