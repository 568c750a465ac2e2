import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bodyAlone, readTemplate, timestampAndBody } from './template.ts';

const headers = { 'x-id': 'abc', 'x-list': ['a', 'b'] };

test('a template is filled in around the body', () => {
  for (const [text, before, after] of [
    ['{body}', '', ''],
    ['v0:{timestamp}:{body}', 'v0:17:', ''],
    ['{header:X-Id}.{timestamp}.{body}', 'abc.17.', ''],
    ['{timestamp}{timestamp}{body}\n{header:x-id}$&', '1717', '\nabc$&'],
  ] as const) {
    assert.deepEqual(readTemplate(text)?.fill('17', headers), { before, after }, text);
  }
});

test('a header that is missing or not a single one leaves it unfilled', () => {
  for (const name of ['x-other', 'x-list', 'constructor', '__proto__']) {
    assert.equal(readTemplate(`{header:${name}}{body}`)?.fill('17', headers), undefined, name);
    assert.equal(readTemplate(`{body}{header:${name}}`)?.fill('17', headers), undefined, name);
  }
});

test('filled-in text is not parsed again', () => {
  const filled = readTemplate('{header:x-id}{body}')?.fill('17', { 'x-id': '{timestamp}{body}' });
  assert.deepEqual(filled, { before: '{timestamp}{body}', after: '' });
});

test('it tells whether the timestamp is signed', () => {
  assert.equal(readTemplate('{body}')?.usesTimestamp, false);
  assert.equal(readTemplate('{body}{timestamp}')?.usesTimestamp, true);
  assert.equal(readTemplate('{timestamp}{body}')?.usesTimestamp, true);
});

test('the two predefined templates equal their text', () => {
  assert.deepEqual(bodyAlone.fill('17', {}), readTemplate('{body}')?.fill('17', {}));
  assert.deepEqual(timestampAndBody.fill('17', {}), readTemplate('{timestamp}.{body}')?.fill('17', {}));
  assert.deepEqual([bodyAlone.usesTimestamp, timestampAndBody.usesTimestamp], [false, true]);
});

test('everything else is no template', () => {
  for (const text of [
    '',
    'text',
    '{timestamp}',
    '{body}{body}',
    '{Body}',
    '{ body }',
    '{body}{',
    '}{body}',
    '{{body}}',
    '{body}{id}',
    '{body}{header:}',
    '{body}{header:a b}',
    '{header:{body}}',
    'é{body}',
  ]) {
    assert.equal(readTemplate(text), undefined, text);
  }
});
