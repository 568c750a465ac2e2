import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ApolloClient, gql, InMemoryCache } from '@apollo/client/core/index.js';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions/index.js';
import { createClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import { openDatabase } from '../../../src/sql/open.ts';
import { engineUrls } from '../../support/databases.ts';
import { waitFor } from '../../support/wait-for.ts';
import { openDoor } from '../support/door.ts';

const FIELDS = '{ id name }';

for (const [engine, databaseUrl] of Object.entries(engineUrls)) {
  describe(`subscriptions of Apollo Client over the users of ${engine}`, () => {
    test('tell of what REST, an import and another process do, whatever order they are opened in', async () => {
      const DATABASE_URL = await databaseUrl();
      await using door = await openDoor({
        env: { DATABASE_URL, GRAPHQL_USERS: 'database', INTERFACES: 'graphql,rest' },
      });
      const url = door.url.replace('http:', 'ws:');
      const socket = createClient({ url, webSocketImpl: WebSocket, retryAttempts: 0 });
      const client = new ApolloClient({ link: new GraphQLWsLink(socket), cache: new InMemoryCache() });
      const seen: string[] = [];
      const fields = ['userCreated', 'userUpdated', 'userDeleted'];
      const subscriptions = fields.map((field) =>
        client.subscribe({ query: gql(`subscription { ${field} ${FIELDS} }`) }).subscribe(({ data }) => {
          const { id, name } = (data as Record<string, { id: string; name: string }>)[field] ?? assert.fail();
          seen.push(`${field} ${id} ${name}`);
        }),
      );
      const { rest = '' } = door.service.urls;
      const send = (method: string, path: string, body: string | null, type: string) =>
        fetch(`${rest}${path}`, { method, body, headers: { 'content-type': type } });
      const json = (name: string) => JSON.stringify({ name, email: 'a@b' });
      // Nothing tells that a subscription is open but its first event.
      let id = 0;
      await waitFor('all subscriptions', async () => {
        const reply = await send('POST', '/users', json('probe'), 'application/json');
        id = Number(reply.headers.get('location')?.split('/').at(-1));
        await send('PUT', `/update/${id}`, json('probed'), 'application/json');
        await send('DELETE', `/delete/${id}`, null, '');
        return fields.every((field) => seen.some((event) => event.startsWith(field)));
      });
      await send('POST', '/users', 'name,email\nimported,i@x\n', 'text/csv');
      {
        await using other = await openDatabase(DATABASE_URL);
        await other.users.update(id + 1, { name: 'changed', email: 'c@x' });
      }
      await send('DELETE', `/delete/${id + 1}`, null, '');
      const wanted = [
        `userCreated ${id + 1} imported`,
        `userUpdated ${id + 1} changed`,
        `userDeleted ${id + 1} changed`,
      ];
      await waitFor('all events', () => wanted.every((event) => seen.includes(event)));
      for (const event of wanted) assert.equal(seen.filter((each) => each === event).length, 1, event);
      for (const subscription of subscriptions) subscription.unsubscribe();
      client.stop();
      await socket.dispose();
    });
  });
}
