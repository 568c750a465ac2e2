import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Client, createClient } from 'graphql-ws';
import WebSocket from 'ws';
import { waitFor } from '../../support/wait-for.ts';
import { graphqlRelationDoors, library, type RelationsDoor } from '../support/relations-door.ts';

function clientOf(door: RelationsDoor): Client & Disposable {
  const client = createClient({
    url: door.url.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    retryAttempts: 0,
  });
  return Object.assign(client, { [Symbol.dispose]: () => void client.dispose() });
}

/** Resolves once so many subscriptions follow changes. */
const following = (door: RelationsDoor, count = 1) =>
  waitFor('a subscription', () => door.followers === count);

const CHANGES =
  'subscription ($after: String) { booksChanged(after: $after) { position type row { title price author { name } loans { reader } _version } } }';

for (const [engine, open] of Object.entries(graphqlRelationDoors)) {
  describe(`subscriptions to relations on ${engine}`, () => {
    test('deliver each change, and go on after a position', async () => {
      await using door = await open(library);
      using client = clientOf(door);
      await door.data('mutation { createAuthor(data: { name: "Austen" }) { id } }');
      // biome-ignore lint/suspicious/noExplicitAny: tests look at members of all shapes
      const iterate = (query: string, variables?: any): AsyncIterableIterator<any> =>
        client.iterate({ query, variables });
      const first = iterate(CHANGES);
      const created = first.next();
      await following(door);
      await door.data('mutation { createBook(data: { title: "Emma", author_id: 1 }) { id } }');
      const { value: one } = await created;
      const { position, ...change } = one.data.booksChanged;
      assert.deepEqual(change, {
        type: 'created',
        row: { title: 'Emma', price: '9.90', author: { name: 'Austen' }, loans: [], _version: null },
      });
      await first.return?.();
      await door.data(
        'mutation { createLoan(data: { book_id: 1, reader: "ann" }) { reader } updateBook(id: 1, data: { price: 3 }) { id } }',
      );
      await door.data('mutation { deleteBook(id: 1) }');
      const later = iterate(CHANGES, { after: position });
      const found = [(await later.next()).value, (await later.next()).value].map(
        ({ data }) => data.booksChanged,
      );
      assert.deepEqual(
        found.map(({ type, row }) => [type, row.title, row.price, row.author.name]),
        [
          ['updated', 'Emma', '3.00', 'Austen'],
          ['deleted', 'Emma', '3.00', 'Austen'],
        ],
      );
      await later.return?.();
      const wrong = iterate(CHANGES, { after: 'x' });
      const { value: refused } = await wrong.next();
      assert.equal(refused.errors[0].extensions.code, 'INVALID_EVENT_ID');
      const gone = iterate(CHANGES, { after: '99.1' });
      assert.equal((await gone.next()).value.errors[0].extensions.code, 'EVENTS_GONE');
    });

    test('deliver one kind of changes whose rows meet a condition', async () => {
      await using door = await open(library);
      using client = clientOf(door);
      await door.data('mutation { createAuthor(data: { name: "Austen" }) { id } }');
      // biome-ignore lint/suspicious/noExplicitAny: tests look at members of all shapes
      const events: AsyncIterableIterator<any> = client.iterate({
        query:
          'subscription { bookCreated(where: { price: { gt: 5 }, kind: { eq: poem } }) { t: title author { books { title } } } }',
      });
      const next = events.next();
      await following(door);
      await door.data(`mutation { createBooks(data: [
        { title: "a", author_id: 1, kind: poem, price: 1 }
        { title: "b", author_id: 1, price: 9 }
        { title: "c", author_id: 1, kind: poem, price: 9 }
      ]) { id } }`);
      assert.deepEqual((await next).value.data, {
        bookCreated: { t: 'c', author: { books: ['a', 'b', 'c'].map((title) => ({ title })) } },
      });
      const other = client.iterate({
        query: 'subscription { bookCreated(where: { author: { name: { eq: "x" } } }) { id } }',
      });
      const { value } = await other.next();
      assert.equal(value?.errors?.[0]?.extensions?.code, 'INVALID_PARAMETER');
    });
  });
}
