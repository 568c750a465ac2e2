import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkedResult } from './checked-result.ts';

test('a result with a status stays as it was, and those without details are identical', () => {
  for (const status of ['UP', 'DOWN', 'OUT_OF_SERVICE', 'UNKNOWN']) {
    const result = { status, details: { a: 1 } };
    const checked = checkedResult(result);
    result.status = 'changed';
    assert.deepEqual(checked, { status, details: { a: 1 } });
    assert.equal(checkedResult({ status }), checkedResult({ status }));
  }
});

test('the status of parts is theirs taken together, whatever is said of the whole', () => {
  const parts = {
    a: { status: 'UP' },
    b: { status: 'UP', components: { c: { status: 'OUT_OF_SERVICE' }, d: { status: 'UP' } } },
  };
  assert.deepEqual(checkedResult({ status: 'UP', components: parts, details: { why: 1 } }), {
    status: 'OUT_OF_SERVICE',
    details: { why: 1 },
    components: { a: { status: 'UP' }, b: { ...parts.b, status: 'OUT_OF_SERVICE' } },
  });
  assert.deepEqual(checkedResult({ components: {} }), { status: 'UP', components: {} });
});

test('a part is named as it likes', () => {
  const components = Object.fromEntries([['__proto__', { status: 'DOWN' }]]);
  const { status, components: parts } = checkedResult({ components });
  assert.equal(status, 'DOWN');
  assert.deepEqual(Object.keys(parts ?? {}), ['__proto__']);
});

test('what is no result is refused', () => {
  const cycle: Record<string, unknown> = {};
  cycle.components = { cycle };
  const answers = [
    undefined,
    null,
    'UP',
    {},
    { status: 'up' },
    { components: { a: '1' } },
    { components: 'abc' },
  ];
  for (const answer of answers) assert.throws(() => checkedResult(answer), TypeError, JSON.stringify(answer));
  assert.throws(() => checkedResult(cycle), RangeError);
});
