import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parse } from 'graphql';
import { type Measure, measureOperations } from './limits.ts';

const measure = (query: string) => measureOperations(parse(query));

test('an operation is as deep as its deepest field, and all the rest is counted', () => {
  const query =
    'query Q @a { a: b { c d: e @f { g @h @i } } ... @j { k } ...L @m } fragment L on X @n { o: p }';
  assert.deepEqual(measure(query), { depth: 3, aliases: 3, directives: 7, rootFields: 3, fields: 6 });
  assert.equal(measure('{ __schema { a { b } } __type(name: "X") { a { b } } }').depth, 1);
  assert.deepEqual(measure('{ a }'), { depth: 1, aliases: 0, directives: 0, rootFields: 1, fields: 1 });
});

test('of several operations the largest counts, in each respect', () => {
  const query = 'query A { a { b { c } } } query B { x: a y: b } mutation C @d @e { f } { g h i }';
  assert.deepEqual(measure(query), { depth: 3, aliases: 2, directives: 2, rootFields: 3, fields: 3 });
});

test('what is not there, or goes round in a circle, is nothing: validation refuses it', () => {
  assert.deepEqual(measure('{ a ...Missing }'), {
    depth: 1,
    aliases: 0,
    directives: 0,
    rootFields: 1,
    fields: 1,
  });
  assert.equal(measure('{ ...A } fragment A on X { a ...B } fragment B on X { b ...A }').rootFields, 2);
  assert.deepEqual(measure('fragment A on X { a }'), {
    depth: 0,
    aliases: 0,
    directives: 0,
    rootFields: 0,
    fields: 0,
  });
});

test('names that every object has are fragments like others', () => {
  for (const name of ['constructor', '__proto__', 'toString', '__schema']) {
    assert.equal(measure(`{ ...${name} } fragment ${name} on X { a b c }`).rootFields, 3);
  }
});

test('a document that unfolds to more than there are atoms is measured at once', () => {
  const steps = Array.from({ length: 2_000 }, (_, i) => `fragment F${i} on X { ...F${i + 1} ...F${i + 1} }`);
  const { aliases, rootFields } = measure(`{ ...F0 } ${steps.join(' ')} fragment F2000 on X { a: b }`);
  assert.deepEqual([aliases, rootFields], [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]);
});

/** A selection as a document has it, and the same one with every fragment written out. */
interface Written {
  readonly short: string;
  readonly long: string;
}

const FRAGMENTS = 4;

/** Selections that may spread the fragments after `index`. */
function selections(index: number, depth: number): fc.Arbitrary<Written> {
  const directive = fc.constantFrom('', '', ' @d', ' @d @e(a: 1)');
  const leaf = fc.tuple(fc.constantFrom('a', 'b: a', '__typename', 'x: __typename'), directive);
  const kinds: fc.Arbitrary<Written>[] = [leaf.map(([name, on]) => ({ short: name + on, long: name + on }))];
  if (depth > 0) {
    const head = fc.constantFrom('f', 'g: f', '...', '... on X', '__schema', '__type(name: "X")');
    kinds.push(
      fc.tuple(head, directive, selections(index, depth - 1)).map(([name, on, { short, long }]) => ({
        short: `${name}${on} { ${short} }`,
        long: `${name}${on} { ${long} }`,
      })),
    );
  }
  for (let later = index + 1; later < FRAGMENTS; later++) {
    const spread = { short: `...F${later}`, long: `<${later}>` };
    kinds.push(directive.map((on) => ({ short: spread.short + on, long: `...${on} { ${spread.long} }` })));
  }
  return fc.array(fc.oneof(...kinds), { minLength: 1, maxLength: 4 }).map((parts) => ({
    short: parts.map(({ short }) => short).join(' '),
    long: parts.map(({ long }) => long).join(' '),
  }));
}

test('fragments change nothing: a document measures like the one with each of them written out', () => {
  const parts = fc.tuple(...Array.from({ length: FRAGMENTS + 1 }, (_, i) => selections(i - 1, 3)));
  fc.assert(
    fc.property(parts, ([operation, ...fragments]) => {
      let long = operation?.long ?? '';
      for (let round = 0; round < FRAGMENTS; round++) {
        long = long.replaceAll(/<(\d)>/g, (_, index: string) => fragments[Number(index)]?.long ?? '');
      }
      // A document of millions of characters says nothing more.
      fc.pre(long.length < 100_000);
      const definitions = fragments.map(({ short }, index) => `fragment F${index} on X { ${short} }`);
      const found: Measure = measure(`{ ${operation?.short} } ${definitions.join(' ')}`);
      assert.deepEqual(found, measure(`{ ${long} }`));
    }),
    { numRuns: 300 },
  );
});
