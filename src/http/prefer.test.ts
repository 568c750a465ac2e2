import assert from 'node:assert/strict';
import { test } from 'node:test';
import { handlesStrictly, preferences } from './prefer.ts';

const preference = (prefer: string | undefined, name: string) =>
  preferences({ headers: { prefer } }).get(name);

test('a preference is read as RFC 7240 writes it', () => {
  assert.equal(preference('handling=strict', 'handling'), 'strict');
  assert.equal(preference('return=minimal, Handling = "strict" ; x=y', 'handling'), 'strict');
  assert.equal(preference('respond-async', 'respond-async'), '');
  assert.equal(preference('note="a, handling=strict"', 'handling'), undefined);
  assert.equal(preference('a="x\\"y"', 'a'), 'x"y');
  assert.equal(preference('count=1, count=2', 'count'), '1', 'the first one counts');
  assert.equal(preference('', 'handling'), undefined);
  assert.equal(preference(undefined, 'handling'), undefined);
});

test('strict handling is asked for in whatever case', () => {
  assert.equal(handlesStrictly({ headers: { prefer: 'handling=STRICT' } }), true);
  assert.equal(handlesStrictly({ headers: { prefer: 'handling=lenient' } }), false);
  assert.equal(handlesStrictly({ headers: {} }), false);
});
