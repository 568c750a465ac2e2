import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { printSchema } from 'graphql';
import {
  type ConcreteRequest,
  ConnectionHandler,
  commitMutation,
  createOperationDescriptor,
  Environment,
  fetchQuery,
  type GraphQLResponse,
  Network,
  RecordSource,
  type RequestParameters,
  Store,
} from 'relay-runtime';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { graphqlRelationDoors, library, type RelationsDoor } from '../support/relations-door.ts';

const require = createRequire(import.meta.url);
const { sqlite: open } = graphqlRelationDoors;
assert.ok(open !== undefined);

/** The documents of a page, as Relay's compiler reads them. */
const SOURCE = `import { graphql } from 'relay-runtime';
graphql\`query pageQuery($after: String) {
  booksConnection(first: 2, after: $after, orderBy: [{ title: ASC }]) @connection(key: "page_booksConnection") {
    edges { node { id title author { id name } } }
  }
}\`;
graphql\`mutation pageCreateMutation($data: BookCreate!, $connections: [ID!]!) {
  createBook(data: $data) @appendNode(connections: $connections, edgeTypeName: "BookEdge") { id title author { id name } }
}\`;
graphql\`mutation pageUpdateMutation($id: ID!, $version: SafeInt) {
  updateBook(id: $id, data: { title: "A" }, ifVersion: $version) { id title }
}\`;
graphql\`subscription pageChangesSubscription($after: String) {
  booksChanged(after: $after, where: { price: { lt: "20" } }) { position type row { id title } }
}\`;
graphql\`query pageGroupsQuery($where: BookWhere) {
  booksAggregate(where: $where, groupBy: [author_id]) { group { author_id } count max { title price } }
}\`;
graphql\`query pageRefetchableQuery { ...page_books }\`;
graphql\`fragment page_books on Query
  @refetchable(queryName: "pageMoreQuery")
  @argumentDefinitions(count: { type: "Int", defaultValue: 2 }, after: { type: "String" }) {
  booksConnection(first: $count, after: $after) @connection(key: "page_books_booksConnection") {
    edges { node { id loans(limit: 3) { reader } } }
  }
}\`;
`;

/** Compiles the documents against a schema with Relay's compiler, into `__generated__` of a folder. */
async function compile(folder: string, schema: string): Promise<void> {
  const binary: unknown = require('relay-compiler');
  assert.ok(typeof binary === 'string', 'there is no compiler for this platform');
  await mkdir(join(folder, 'src'));
  const config = { src: './src', schema: './schema.graphql', language: 'javascript', eagerEsModules: true };
  for (const [name, text] of Object.entries({
    'package.json': '{ "type": "module" }',
    'relay.config.json': JSON.stringify(config),
    'schema.graphql': schema,
    'src/page.js': SOURCE,
  })) {
    await writeFile(join(folder, name), text);
  }
  await promisify(execFile)(binary, ['relay.config.json'], { cwd: folder });
}

/** A compiled operation. */
async function artifact(folder: string, name: string): Promise<ConcreteRequest> {
  const { default: found } = await import(
    pathToFileURL(join(folder, `src/__generated__/${name}.graphql.js`)).href
  );
  return found;
}

function environmentOf(door: RelationsDoor): Environment {
  const network = Network.create(
    async (parameters: RequestParameters, variables): Promise<GraphQLResponse> => {
      const { body } = await door.ask({ query: parameters.text ?? '', variables });
      return body as GraphQLResponse;
    },
  );
  // Rows of two relations may have the same id.
  const getDataID = ({ id }: { readonly id?: unknown }, type: string) =>
    id === undefined ? undefined : `${type}:${id}`;
  return new Environment({ network, store: new Store(new RecordSource()), getDataID });
}

// biome-ignore lint/suspicious/noExplicitAny: artifacts of JavaScript have no types
type Data = any;

test("Relay's compiler takes the schema, and its runtime pages, creates and changes rows", async (t) => {
  await using door = await open(library);
  await using folder = await temporaryFolder();
  await compile(folder.path, printSchema(door.schema));
  await door.data(`mutation {
    createAuthor(data: { name: "Austen", books: [{ title: "a" }, { title: "b" }, { title: "c" }] }) { id }
  }`);
  const environment = environmentOf(door);
  const warned = t.mock.method(console, 'error', () => {});
  const query = await artifact(folder.path, 'pageQuery');
  const fetched = async (after: string | null): Promise<Data> =>
    await fetchQuery(environment, query, { after }).toPromise();
  const titles: string[] = [];
  for (let after: string | null = null, more = true; more; ) {
    const { booksConnection } = await fetched(after);
    titles.push(...booksConnection.edges.map((edge: Data) => edge.node.title));
    after = booksConnection.pageInfo.endCursor;
    more = booksConnection.pageInfo.hasNextPage;
  }
  // The store joins the pages of a connection.
  assert.deepEqual([titles[0], titles.at(-1)], ['a', 'c']);
  const connection = ConnectionHandler.getConnectionID('client:root', 'page_booksConnection', {
    orderBy: [{ title: 'ASC' }],
  });
  const commit = async (name: string, variables: Readonly<Record<string, unknown>>) => {
    const mutation = await artifact(folder.path, name);
    await new Promise((resolve, reject) => {
      const onCompleted = (_: unknown, errors: unknown) =>
        errors === null ? resolve(undefined) : reject(new Error(JSON.stringify(errors)));
      commitMutation(environment, { mutation, variables, onCompleted, onError: reject });
    });
  };
  await commit('pageCreateMutation', {
    data: { title: 'd', author: { name: 'Bronte' } },
    connections: [connection],
  });
  await commit('pageUpdateMutation', { id: '1', version: null });
  const { data }: Data = environment.lookup(createOperationDescriptor(query, { after: null }).fragment);
  const shown = data.booksConnection.edges.map(({ node }: Data) => `${node.title} ${node.author.name}`);
  assert.deepEqual(shown, ['A Austen', 'b Austen', 'c Austen', 'd Bronte']);
  // The store warns of records that are not of one type.
  assert.equal(warned.mock.callCount(), 0, String(warned.mock.calls[0]?.arguments));
  const groups = await artifact(folder.path, 'pageGroupsQuery');
  const { booksAggregate }: Data = await fetchQuery(environment, groups, { where: null }).toPromise();
  // Without an `id` the store keeps each group apart.
  assert.deepEqual(JSON.parse(JSON.stringify(booksAggregate)), [
    { group: { author_id: 1 }, count: 3, max: { title: 'c', price: '9.90' } },
    { group: { author_id: 2 }, count: 1, max: { title: 'd', price: '9.90' } },
  ]);
});

test('the compiler refuses a schema whose connections are not those of Relay', async () => {
  await using door = await open(library);
  await using folder = await temporaryFolder();
  const other = printSchema(door.schema).replace('  endCursor: String', '  end: String');
  await assert.rejects(compile(folder.path, other), ({ stdout, stderr }: Data) => {
    assert.match(`${stdout}${stderr}`, /endCursor/);
    return true;
  });
});
