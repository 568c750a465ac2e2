import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EndpointBook } from './endpoint-book.ts';
import type { StoredEndpoint } from './store.ts';

const endpoint = (id: string, updatedAt: number): StoredEndpoint => ({
  seq: 1,
  id,
  tenant: 't',
  settings: { url: 'https://example.org' },
  secrets: [],
  disabled: null,
  disabledAt: null,
  failingSince: null,
  createdAt: 0,
  updatedAt,
});

/** A book over endpoints that the test changes, with the ids of each read. */
function bookOf(stored: Map<string, StoredEndpoint>) {
  const reads: (readonly string[])[] = [];
  let made = 0;
  const store = {
    async endpointsOf(ids: readonly string[]) {
      reads.push(ids);
      return ids.flatMap((id) => stored.get(id) ?? []);
    },
  };
  return { reads, book: new EndpointBook(store, () => ++made) };
}

test('endpoints that are asked for together are read together, and kept', async () => {
  const { book, reads } = bookOf(new Map(['a', 'b'].map((id) => [id, endpoint(id, 1)])));
  const [a, b, c, again] = await Promise.all(['a', 'b', 'c', 'a'].map((id) => book.get(id)));
  assert.deepEqual([a?.made, b?.made, c, again], [1, 2, undefined, a]);
  assert.equal(book.peek('a'), a);
  assert.deepEqual(reads, [['a', 'b', 'c']]);
});

test('an endpoint that is forgotten is read anew, and keeps its limits of rate unless its settings changed', async () => {
  const stored = new Map([['a', endpoint('a', 1)]]);
  const { book, reads } = bookOf(stored);
  await book.get('a');
  stored.set('a', { ...endpoint('a', 1), failingSince: 5 });
  book.forget('a');
  const failing = await book.get('a');
  assert.deepEqual([failing?.made, failing?.endpoint.failingSince], [1, 5]);
  stored.set('a', endpoint('a', 2));
  book.forget('a');
  assert.equal((await book.get('a'))?.made, 2);
  stored.clear();
  book.forget('a');
  assert.equal(await book.get('a'), undefined);
  assert.equal(book.peek('a'), undefined);
  assert.equal(reads.length, 4);
});
