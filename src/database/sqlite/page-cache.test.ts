import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PageCache } from './page-cache.ts';

/** A cache, and a read of it that tells what it gave; `made` counts the pages that had to be made. */
function open(maxLength?: number) {
  const cache = new PageCache(maxLength);
  const state = { made: 0 };
  const read = (version: number, key: string, json: string) =>
    cache.find(version, key, () => {
      state.made++;
      return { json, count: 1, state: '', lastId: 1 };
    }).json;
  return { state, read };
}

test('a page is made once for a version, and anew for another', () => {
  const { state, read } = open();
  assert.equal(read(1, 'a', 'x'), 'x');
  assert.equal(read(1, 'a', 'other'), 'x');
  assert.equal(read(1, 'b', 'y'), 'y');
  assert.equal(state.made, 2);
  assert.equal(read(2, 'a', 'z'), 'z');
  assert.equal(read(2, 'b', 'w'), 'w');
  assert.equal(read(1, 'a', 'v'), 'v', 'nothing of an older version is kept');
  assert.equal(state.made, 5);
});

test('an empty page is forgotten too', () => {
  const { read } = open();
  assert.equal(read(1, 'a', ''), '');
  assert.equal(read(2, 'a', 'x'), 'x');
});

test('a page that does not fit is read each time, the others stay cached', () => {
  const { state, read } = open(10);
  for (let i = 0; i < 3; i++) {
    read(1, 'a', '12345678');
    read(1, 'b', '123');
    read(1, 'c', '12');
  }
  assert.equal(state.made, 1 + 3 + 1);
});
