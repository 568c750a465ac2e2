import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UserPage } from '../users/user-pages.ts';
import { PageCache } from './page-cache.ts';

function page(size: number): UserPage {
  return { bytes: Buffer.alloc(size), count: 1, lastId: 1, more: false, state: '' };
}

test('a page is found at its version only, and those of another version are forgotten', () => {
  const cache = new PageCache<number>();
  const [first, second] = [page(10), page(10)];
  cache.add(1, 'a', first, 1);
  cache.add(1, 'b', second, 1);
  assert.equal(cache.find(1, 'a'), first);
  assert.equal(cache.find(1, 'b'), second);
  assert.equal(cache.find(2, 'a'), undefined);
  assert.ok(cache.has('a'));
  cache.add(2, 'b', first, 1);
  assert.equal(cache.find(2, 'a'), undefined);
  assert.equal(cache.has('a'), false);
  assert.equal(cache.find(1, 'b'), undefined);
});

test('the pages are bounded in bytes, however many there are, and those that are asked for stay', () => {
  const max = 100_000;
  const cache = new PageCache<string>(max);
  for (let i = 0; i < 1_000; i++) {
    cache.add('v', `page ${i}`, page(1 + ((i * 7919) % 9_000)), 1);
    assert.ok(cache.bytes <= max, `${cache.bytes} bytes`);
    assert.ok(cache.find('v', 'page 0'));
  }
  cache.add('v', 'large', page(max), 1);
  assert.equal(cache.has('large'), false);
});

test('of a list that is larger than the cache no page is kept, unless it is the only one', () => {
  const cache = new PageCache<number>(100_000);
  const piece = { ...page(1_000), count: 10, lastId: 10, more: true };
  cache.add(1, 'long', piece, 1_001);
  assert.equal(cache.has('long'), false);
  cache.add(1, 'short', piece, 900);
  assert.ok(cache.has('short'));
  cache.add(1, 'sparse', { ...piece, more: false }, 1_000_000);
  assert.ok(cache.has('sparse'));
});
