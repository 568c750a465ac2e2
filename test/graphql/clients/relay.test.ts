import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import {
  type ConcreteRequest,
  commitMutation,
  Environment,
  fetchQuery,
  type GraphQLResponse,
  Network,
  type OperationType,
  RecordSource,
  type RequestParameters,
  Store,
} from 'relay-runtime';
import { openDoor, trustedFile } from '../support/door.ts';
import { linesOf, recordedFetch } from './recorded-fetch.ts';

const md5 = (text: string) => createHash('md5').update(text).digest('hex');

/** An artifact as Relay's compiler writes it: with its text, or with the id that the text is persisted under. */
function artifact(isPersisted: boolean, kind: 'query' | 'mutation', parts: ArtifactParts): ConcreteRequest {
  const { name, text, argument, field } = parts;
  const argumentDefinitions = [{ defaultValue: null, kind: 'LocalArgument', name: argument } as const];
  const selections = [
    {
      alias: null,
      args: [{ kind: 'Variable', name: argument, variableName: argument }, ...(parts.args ?? [])],
      concreteType: 'User',
      kind: 'LinkedField',
      name: field,
      plural: false,
      selections: ['id', 'name'].map((leaf) => ({
        alias: null,
        args: null,
        kind: 'ScalarField',
        name: leaf,
        storageKey: null,
      })),
      storageKey: null,
    },
  ];
  return {
    fragment: {
      argumentDefinitions,
      kind: 'Fragment',
      metadata: null,
      name,
      selections,
      type: kind === 'query' ? 'Query' : 'Mutation',
      abstractKey: null,
    },
    kind: 'Request',
    operation: { argumentDefinitions, kind: 'Operation', name, selections },
    params: {
      cacheID: md5(text),
      metadata: {},
      name,
      operationKind: kind,
      ...(isPersisted ? { id: md5(text), text: null } : { id: null, text }),
    },
  } as unknown as ConcreteRequest;
}

interface ArtifactParts {
  readonly name: string;
  readonly text: string;
  readonly argument: string;
  readonly field: string;
  readonly args?: readonly object[];
}

const USER: ArtifactParts = {
  name: 'RelayUserQuery',
  text: 'query RelayUserQuery(\n  $id: ID!\n) {\n  user(id: $id) {\n    id\n    name\n  }\n}\n',
  argument: 'id',
  field: 'user',
};
const CREATE: ArtifactParts = {
  name: 'RelayCreateMutation',
  text: 'mutation RelayCreateMutation(\n  $name: String!\n) {\n  createUser(name: $name, email: "ada@example.org") {\n    id\n    name\n  }\n}\n',
  argument: 'name',
  field: 'createUser',
  args: [{ kind: 'Literal', name: 'email', value: 'ada@example.org' }],
};

/** What the compiler writes with `persistConfig.file`. */
const persisted = Object.fromEntries([USER, CREATE].map(({ text }) => [md5(text), text]));

interface UserQuery extends OperationType {
  readonly variables: { readonly id: string };
  readonly response: { readonly user: { readonly id: string; readonly name: string } | null };
}

/** An environment whose network layer names a persisted document in one way, and what it has sent. */
function environmentOf(url: string, nameOf: (id: string) => object) {
  const { fetch, requests } = recordedFetch();
  const network = Network.create(
    async ({ id, text }: RequestParameters, variables): Promise<GraphQLResponse> => {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...(id == null ? { query: text } : nameOf(id)), variables }),
      });
      return (await response.json()) as GraphQLResponse;
    },
  );
  const environment = new Environment({ network, store: new Store(new RecordSource()) });
  return { environment, sent: () => linesOf(requests) };
}

async function readUser(environment: Environment, isPersisted: boolean) {
  const request = artifact(isPersisted, 'query', USER);
  return fetchQuery<UserQuery>(environment, request, { id: '1' }).toPromise();
}

function createUser(environment: Environment, isPersisted: boolean): Promise<object> {
  return new Promise((resolve, reject) => {
    commitMutation(environment, {
      mutation: artifact(isPersisted, 'mutation', CREATE),
      variables: { name: 'Ada' },
      onCompleted: (response, errors) => (errors == null ? resolve(response) : reject(errors)),
      onError: reject,
    });
  });
}

test('queries and mutations as text', async () => {
  await using door = await openDoor();
  const { environment, sent } = environmentOf(door.url, () => ({}));
  assert.equal((await readUser(environment, false))?.user?.id, '1');
  assert.deepEqual(await createUser(environment, false), { createUser: { id: '3', name: 'Ada' } });
  assert.deepEqual(sent(), ['POST text 200', 'POST text 200']);
});

for (const name of ['doc_id', 'documentId']) {
  test(`persisted ones by ${name}, and no others`, async () => {
    await using trusted = await trustedFile(persisted);
    await using door = await openDoor({ env: { ...trusted.env, GRAPHQL_ONLY_DOCUMENTS: 'true' } });
    const { environment, sent } = environmentOf(door.url, (id) => ({ [name]: id }));
    assert.equal((await readUser(environment, true))?.user?.id, '1');
    assert.deepEqual(await createUser(environment, true), { createUser: { id: '3', name: 'Ada' } });
    const other = artifact(true, 'query', { ...USER, text: `${USER.text}# newer` });
    await assert.rejects(
      fetchQuery<UserQuery>(environment, other, { id: '1' }).toPromise(),
      /No trusted document has this id/,
    );
    assert.deepEqual(sent(), ['POST name 200', 'POST name 200', 'POST name 200 DOCUMENT_NOT_FOUND']);
  });
}
