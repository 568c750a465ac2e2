import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UserPage } from '../relations/lists.ts';
import { PageCache } from './page-cache.ts';

function page(size: number): UserPage {
  return { bytes: Buffer.alloc(size), count: 1, lastId: 1, more: false, state: '' };
}

test('a page is found at its version only, and those of another version are forgotten', () => {
  const cache = new PageCache<number>();
  const [first, second] = [page(10), page(10)];
  cache.add(1, 'a', first);
  cache.add(1, 'b', second);
  assert.equal(cache.find(1, 'a'), first);
  assert.equal(cache.find(1, 'b'), second);
  assert.equal(cache.find(2, 'a'), undefined);
  assert.ok(cache.has('a'));
  cache.add(2, 'b', first);
  assert.equal(cache.find(2, 'a'), undefined);
  assert.equal(cache.has('a'), false);
  assert.equal(cache.find(1, 'b'), undefined);
});

test('the pages are bounded in bytes, however many there are, and those that are asked for stay', () => {
  const max = 100_000;
  const cache = new PageCache<string>(max);
  for (let i = 0; i < 1_000; i++) {
    cache.add('v', `page ${i}`, page(1 + ((i * 7919) % 9_000)));
    assert.ok(cache.bytes <= max, `${cache.bytes} bytes`);
    assert.ok(cache.find('v', 'page 0'));
  }
  cache.add('v', 'large', page(max));
  assert.equal(cache.has('large'), false);
});

test('of a list that is larger than the cache only the beginning is kept, unless it is one page', () => {
  const cache = new PageCache<number>(100_000);
  const piece = { ...page(1_000), count: 10, lastId: 900, more: true };
  cache.add(1, 'begin', piece);
  assert.ok(cache.has('begin'));
  cache.add(1, 'later', { ...piece, lastId: 1_001 });
  assert.equal(cache.has('later'), false);
  cache.add(1, 'sparse', { ...piece, lastId: 1_000_000, more: false });
  assert.ok(cache.has('sparse'));
});
