import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseAccept, prefersHtml } from './accept.ts';

test('the most specific range decides', () => {
  const wanted = parseAccept('*/*;q=0.1, application/*;q=0.5, application/json;q=0, text/html');
  assert.deepEqual(wanted('application/json'), { weight: 0, specificity: 2 });
  assert.deepEqual(wanted('application/xml'), { weight: 0.5, specificity: 1 });
  assert.deepEqual(wanted('image/png'), { weight: 0.1, specificity: 0 });
  assert.deepEqual(wanted('text/html'), { weight: 1, specificity: 2 });
  assert.deepEqual(parseAccept('')('text/html'), { weight: 0, specificity: 0 });
});

test('of equal ranges the heaviest counts', () => {
  for (const accept of ['a/b;q=0.2, a/b;q=0.7', 'a/b;q=0.7, a/b;q=0.2']) {
    assert.equal(parseAccept(accept)('a/b').weight, 0.7);
  }
});

test('a page has to be wanted more than anything else', () => {
  const others = ['application/json', 'application/x+json'];
  for (const accept of ['text/html', 'text/*', 'text/html, */*;q=0.8', 'application/json;q=0.9,text/html']) {
    assert.equal(prefersHtml(accept, others), true, accept);
  }
  for (const accept of [undefined, '', '*/*', 'application/json, text/html', 'text/html;q=0', 'image/png']) {
    assert.equal(prefersHtml(accept, others), false, String(accept));
  }
  assert.equal(prefersHtml('text/html;q=0.5, application/x+json;q=0.5', others), false);
});

test('any header gives weights from 0 to 1', () => {
  const soup = fc.string({ unit: fc.constantFrom(...'aQq=;,01. "\\/*') });
  fc.assert(
    fc.property(soup, fc.constantFrom('a/a', '*/*', 'text/html'), (accept, type) => {
      const { weight } = parseAccept(accept)(type);
      assert.ok(weight >= 0 && weight <= 1);
    }),
  );
});
