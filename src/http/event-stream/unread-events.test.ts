import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_BUFFERED, UnreadEvents } from './unread-events.ts';

test('a reader may be behind by one event of any size, and by many small ones up to the bound', () => {
  const reader = new UnreadEvents(1e9).reader();
  assert.equal(reader.isTooLong, false);
  reader.add(MAX_BUFFERED);
  assert.equal(reader.isTooLong, false);
  reader.add(1);
  assert.equal(reader.isTooLong, true);
  reader.remove(1);
  assert.equal(reader.isTooLong, false);
});

test('when too much waits for all, those who are behind have to go, and those who keep up stay', () => {
  const unread = new UnreadEvents(1_000);
  const [behind, slow, quick] = [unread.reader(), unread.reader(), unread.reader()];
  behind.add(900);
  slow.add(100);
  assert.equal(slow.isTooLong, false);
  slow.add(1);
  assert.deepEqual([behind.isTooLong, slow.isTooLong, quick.isTooLong], [true, true, false]);
  behind.remove(900);
  assert.equal(slow.isTooLong, false);
  slow.remove(101);
  assert.equal(unread.bytes, 0);
});
