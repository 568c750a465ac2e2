import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApolloClient, ApolloLink, gql, HttpLink, InMemoryCache } from '@apollo/client';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { relayStylePagination } from '@apollo/client/utilities';
import { createClient } from 'graphql-ws';
import {
  type ConcreteRequest,
  Environment,
  fetchQuery,
  type GraphQLResponse,
  Network,
  RecordSource,
  type RequestParameters,
  Store,
} from 'relay-runtime';
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

const leaf = (name: string) => ({ alias: null, args: null, kind: 'ScalarField', name, storageKey: null });
const linked = (
  name: string,
  concreteType: string,
  selections: readonly object[],
  args: object[] | null = null,
) => ({
  alias: null,
  args,
  concreteType,
  kind: 'LinkedField',
  name,
  plural: name === 'edges',
  selections,
  storageKey: null,
});

test('Relay reads a connection', async () => {
  await using door = await open(library);
  await door.data(FILL);
  const text =
    'query Page($after: String) { booksConnection(first: 2, after: $after) { edges { cursor node { id title } } pageInfo { endCursor hasNextPage } } }';
  const args = [
    { kind: 'Variable', name: 'after', variableName: 'after' },
    { kind: 'Literal', name: 'first', value: 2 },
  ];
  const node = linked('node', 'Book', [leaf('id'), leaf('title')]);
  const selections = [
    linked(
      'booksConnection',
      'BookConnection',
      [
        linked('edges', 'BookEdge', [leaf('cursor'), node]),
        linked('pageInfo', 'PageInfo', [leaf('endCursor'), leaf('hasNextPage')]),
      ],
      args,
    ),
  ];
  const argumentDefinitions = [{ defaultValue: null, kind: 'LocalArgument', name: 'after' }];
  const request = {
    fragment: {
      argumentDefinitions,
      kind: 'Fragment',
      metadata: null,
      name: 'Page',
      selections,
      type: 'Query',
      abstractKey: null,
    },
    kind: 'Request',
    operation: { argumentDefinitions, kind: 'Operation', name: 'Page', selections },
    params: { cacheID: 'page', metadata: {}, name: 'Page', operationKind: 'query', id: null, text },
  } as unknown as ConcreteRequest;
  const network = Network.create(
    async (parameters: RequestParameters, variables): Promise<GraphQLResponse> => {
      const { body } = await door.ask({ query: parameters.text ?? '', variables });
      return body as GraphQLResponse;
    },
  );
  const environment = new Environment({ network, store: new Store(new RecordSource()) });
  const titles: string[] = [];
  for (let after: string | null = null, more = true; more; ) {
    // biome-ignore lint/suspicious/noExplicitAny: the artifact has no types
    const { booksConnection }: any = await fetchQuery<any>(environment, request, { after }).toPromise();
    // biome-ignore lint/suspicious/noExplicitAny: the artifact has no types
    titles.push(...booksConnection.edges.map((edge: any) => edge.node.title));
    after = booksConnection.pageInfo.endCursor;
    more = booksConnection.pageInfo.hasNextPage;
  }
  assert.deepEqual(titles, ['a', 'b', 'c']);
});
