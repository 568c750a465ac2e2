import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { allowedAt } from './routing.ts';

/** By first segment: the methods without and with a second one (contract 4.2). */
const ALLOW = {
  users: ['GET, HEAD, POST, OPTIONS', 'GET, HEAD, OPTIONS'],
  update: ['OPTIONS', 'PUT, OPTIONS'],
  delete: ['OPTIONS', 'DELETE, OPTIONS'],
} as const;
const names = Object.keys(ALLOW) as (keyof typeof ALLOW)[];

test('a known first segment gets the empty reply with the methods of its shape', () => {
  assert.deepEqual(allowedAt('/users'), 'GET, HEAD, POST, OPTIONS');
  assert.deepEqual(allowedAt('/users/1'), 'GET, HEAD, OPTIONS');
  assert.deepEqual(allowedAt('/update'), 'OPTIONS');
  assert.deepEqual(allowedAt('/update/'), 'OPTIONS');
  assert.deepEqual(allowedAt('/delete/x?y=1/2/3'), 'DELETE, OPTIONS');
});

test('an unknown first segment is unknown', () => {
  const targets = [
    '',
    '/',
    '?',
    '*',
    'users',
    '/user',
    '/Users',
    '//users',
    '/users%2F1',
    '/users;a',
    '/ users',
    '/.',
  ];
  for (const target of [...targets, '/constructor', '/__proto__/1', '/toString', '/users/1/2', '/users//1']) {
    assert.deepEqual(allowedAt(target), undefined, target);
  }
});

test('a path that cannot be decoded is taken as it is', () => {
  assert.deepEqual(allowedAt('/users/%zz'), 'GET, HEAD, OPTIONS');
  assert.deepEqual(allowedAt('/users/%ff'), 'GET, HEAD, OPTIONS');
  assert.deepEqual(allowedAt('/%'), undefined);
});

/** A text with some of its letters behind a percent sign. */
const spelled = (text: string) =>
  fc.array(fc.boolean(), { minLength: text.length, maxLength: text.length }).map((hidden) =>
    text
      .split('')
      .map((letter, i) => (hidden[i] ? `%${letter.charCodeAt(0).toString(16)}` : letter))
      .join(''),
  );
const word = fc.string({ unit: 'grapheme' });
const query = fc.oneof(
  fc.constant(''),
  word.map((text) => `?${text}`),
);

test('however it is spelled, what the path names decides', () => {
  const known = fc.constantFrom(...names).chain((name) => fc.tuple(fc.constant(name), spelled(name)));
  const tail = fc.constantFrom('', '/', '//', '///');
  fc.assert(
    fc.property(known, fc.option(word), tail, query, ([name, first], second, slashes, what) => {
      const segment = encodeURIComponent(second ?? '');
      const target = `/${first}${second === null ? '' : `/${segment}`}${slashes}${what}`;
      assert.deepEqual(allowedAt(target), ALLOW[name][segment === '' ? 0 : 1]);
    }),
  );
});

test('any other first segment, and any deeper path, is unknown', () => {
  const first = word.filter((text) => !names.some((name) => name === text)).map(encodeURIComponent);
  fc.assert(
    fc.property(first, fc.array(word.map(encodeURIComponent)), query, (name, rest, what) => {
      assert.deepEqual(allowedAt(`/${[name, ...rest].join('/')}${what}`), undefined);
    }),
  );
  const deeper = fc.string({ minLength: 1, unit: 'grapheme' }).map(encodeURIComponent);
  fc.assert(
    fc.property(fc.constantFrom(...names), word.map(encodeURIComponent), deeper, (name, id, more) => {
      assert.deepEqual(allowedAt(`/${name}/${id}/${more}`), undefined);
    }),
  );
});

test('any text gets an answer', () => {
  const soup = fc.string({
    unit: fc.constantFrom('/', '%', '?', '#', '2f', 'users', 'update', '\\', '..', '\ud800'),
  });
  fc.assert(
    fc.property(fc.oneof(fc.string(), soup), (target) => {
      const answer = allowedAt(target);
      const known: readonly (string | undefined)[] = [...Object.values(ALLOW).flat(), undefined];
      assert.ok(known.includes(answer));
    }),
    { numRuns: 500 },
  );
});
