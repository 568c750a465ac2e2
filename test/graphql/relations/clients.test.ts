import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApolloClient, ApolloLink, gql, HttpLink, InMemoryCache } from '@apollo/client';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { relayStylePagination } from '@apollo/client/utilities';
import {
  cacheExchange,
  createClient as createUrqlClient,
  fetchExchange,
  subscriptionExchange,
} from '@urql/core';
import { createClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import { waitFor } from '../../support/wait-for.ts';
import { graphqlRelationDoors, library } from '../support/relations-door.ts';

const { sqlite: open } = graphqlRelationDoors;
assert.ok(open !== undefined);
const FILL = `mutation {
  createAuthor(data: { name: "Austen" }) { id }
  createBooks(data: [{ title: "a", author_id: 1 }, { title: "b", author_id: 1 }, { title: "c", author_id: 1 }]) { id }
}`;

test('Apollo Client joins the pages of a connection, and adds a row that a subscription brings', async () => {
  await using door = await open(library);
  await door.data(FILL);
  const socket = createClient({
    url: door.url.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    retryAttempts: 0,
  });
  const client = new ApolloClient({
    cache: new InMemoryCache({
      typePolicies: { Query: { fields: { booksConnection: relayStylePagination(['orderBy']) } } },
    }),
    link: ApolloLink.split(
      ({ operationType }) => operationType === 'subscription',
      new GraphQLWsLink(socket),
      new HttpLink({ uri: door.url }),
    ),
  });
  const query = gql`query Books($after: String) {
    booksConnection(first: 2, after: $after, orderBy: { title: ASC }) {
      edges { cursor node { id title author { id name } } }
      pageInfo { endCursor hasNextPage }
    }
  }`;
  const watched = client.watchQuery<{
    readonly booksConnection: {
      readonly edges: readonly { readonly node: { readonly title: string } }[];
      readonly pageInfo: { readonly endCursor: string; readonly hasNextPage: boolean };
    };
  }>({ query });
  const subscription = watched.subscribe(() => {});
  const first = await watched.refetch();
  assert.equal(first.data?.booksConnection.pageInfo.hasNextPage, true);
  await watched.fetchMore({ variables: { after: first.data?.booksConnection.pageInfo.endCursor } });
  const titles = () =>
    watched.getCurrentResult().data?.booksConnection?.edges?.map((edge) => edge?.node?.title);
  await waitFor('the second page', () => titles()?.length === 3);
  assert.deepEqual(titles(), ['a', 'b', 'c']);
  const seen: unknown[] = [];
  const changes = client
    .subscribe({ query: gql`subscription { bookUpdated { id title author { id name } } }` })
    .subscribe(({ data }) => seen.push(data));
  await waitFor('the subscription', () => door.followers === 1);
  await door.data('mutation { updateBook(id: 2, data: { title: "B" }) { id } }');
  await waitFor('the event', () => seen.length > 0);
  // The cache knows the row by its type and id.
  await waitFor('the new title', () => titles()?.[1] === 'B');
  changes.unsubscribe();
  subscription.unsubscribe();
  client.stop();
  await socket.dispose();
});

test('urql reads a list anew after a mutation of its rows, and gets the rows of a subscription', async () => {
  await using door = await open(library);
  await door.data(FILL);
  const socket = createClient({
    url: door.url.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    retryAttempts: 0,
  });
  const client = createUrqlClient({
    url: door.url,
    preferGetMethod: false,
    exchanges: [
      cacheExchange,
      fetchExchange,
      subscriptionExchange({
        forwardSubscription: ({ query = '' }) => ({
          subscribe: ({ next, error, complete }) => ({
            unsubscribe: socket.subscribe(
              { query },
              { next: (result) => next(result as Parameters<typeof next>[0]), error, complete },
            ),
          }),
        }),
      }),
    ],
  });
  const lists: unknown[] = [];
  const watched = client
    .query('{ books(orderBy: { title: ASC }) { id title loans { reader } } }', {})
    .subscribe(({ data }) =>
      lists.push(data?.books.map(({ title }: { readonly title: string }) => title).join()),
    );
  await waitFor('the list', () => lists.length === 1);
  const changes: unknown[] = [];
  const followed = client
    .subscription('subscription { bookCreated { id title author { name } } }', {})
    .subscribe(({ data }) => changes.push(data?.bookCreated));
  await waitFor('the subscription', () => door.followers === 1);
  const { data } = await client.mutation(
    'mutation ($data: BookCreate!) { createBook(data: $data) { id title loans { reader } } }',
    { data: { title: 'd', author: { name: 'Bronte' }, loans: [{ reader: 'ann' }] } },
  );
  assert.deepEqual(data?.createBook.loans, [{ __typename: 'Loan', reader: 'ann' }]);
  await waitFor('the list with the new row', () => lists.at(-1) === 'a,b,c,d');
  await waitFor('the event', () => changes.length === 1);
  assert.deepEqual(JSON.parse(JSON.stringify(changes)), [
    { id: '4', title: 'd', author: { name: 'Bronte' } },
  ]);
  assert.equal(lists[0], 'a,b,c');
  watched.unsubscribe();
  followed.unsubscribe();
  await socket.dispose();
});
