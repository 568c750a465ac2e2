import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatPointer, parsePointer, valueAt } from './json.ts';

// The example of RFC 6901, section 5.
const example = JSON.parse(`{
  "foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\\\j": 5, "k\\"l": 6, " ": 7, "m~n": 8
}`);

const at = (document: unknown, text: string) => valueAt(document, parsePointer(text) ?? assert.fail(text));

test('the examples of RFC 6901', () => {
  for (const [text, value] of [
    ['', example],
    ['/foo', ['bar', 'baz']],
    ['/foo/0', 'bar'],
    ['/', 0],
    ['/a~1b', 1],
    ['/c%d', 2],
    ['/e^f', 3],
    ['/g|h', 4],
    ['/i\\j', 5],
    ['/k"l', 6],
    ['/ ', 7],
    ['/m~0n', 8],
  ] as const) {
    assert.deepEqual(at(example, text), value, text);
  }
  assert.equal(at({ '~1': 'escape once' }, '/~01'), 'escape once');
});

test('nothing is where nothing stands', () => {
  for (const text of ['/x', '/foo/2', '/foo/-', '/foo/00', '/foo/01', '/foo/0x1', '/foo/1e0', '/foo/ 1']) {
    assert.equal(at(example, text), undefined, text);
  }
  for (const text of [
    '/foo/length',
    '/foo/0/0',
    '/foo/0/length',
    '/constructor',
    '/__proto__',
    '/toString',
  ]) {
    assert.equal(at(example, text), undefined, text);
  }
  for (const document of [null, 'text', 1, true, undefined]) assert.equal(at(document, '/0'), undefined);
  assert.equal(at({ a: null }, '/a/b'), undefined);
  assert.equal(at({ a: null }, '/a'), null);
});

test('what is no pointer', () => {
  for (const text of ['a', 'a/b', '#/a', ' /a', '/~', '/~2', '/a~', '/a/~/b']) {
    assert.equal(parsePointer(text), undefined, text);
  }
});

test('every member of a document is found at its own pointer, and nowhere else', () => {
  const key = fc.string({ unit: fc.constantFrom('a', '~', '/', '0', '1', '') });
  const escaped = (text: string) => text.replaceAll('~', '~0').replaceAll('/', '~1');
  fc.assert(
    fc.property(fc.array(key, { maxLength: 5 }), fc.jsonValue(), (path, value) => {
      const document = path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
      const text = path.map((name) => `/${escaped(name)}`).join('');
      assert.deepEqual(parsePointer(text), path);
      assert.equal(formatPointer(path), text);
      assert.deepEqual(at(document, text), value);
      assert.equal(at([document], text === '' ? '/1' : text.replace(/^\/[^/]*/, '/1')), undefined);
    }),
  );
});
