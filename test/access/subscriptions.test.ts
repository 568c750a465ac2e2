import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { openSocket } from '../graphql/support/socket-client.ts';
import { startTestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

const WATCHER = 'watcher-token-0123456789';
const WRITER = 'writer-token-0123456789';
const MODULE = `import { writeFileSync } from 'node:fs';
writeFileSync(new URL('./token', import.meta.url), '${WATCHER}');
export default { limits: { api: { maxFailures: 0 } }, api: { required: 'all', tokens: {
  watcher: { secret: { file: 'token' }, scopes: ['users:read'] },
  writer: { secret: '${WRITER}', scopes: ['users:read', 'users:write'] },
} } };`;

test('a subscription ends when the token that opened it is replaced, at the next event', async () => {
  await using service = await startTestService({ module: MODULE, env: { INTERFACES: 'graphql' } });
  await service.listen();
  const url = `${service.urls.graphql}/graphql`;
  const post = (token: string, query: string, accept = 'application/json') =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept, authorization: `Bearer ${token}` },
      body: JSON.stringify({ query }),
    });
  const create = () => post(WRITER, 'mutation { createUser(name: "A", email: "a@b") { id } }');
  const subscription = 'subscription { userCreated { name } }';

  const client = await openSocket(url);
  client.send({ type: 'connection_init', payload: { Authorization: `Bearer ${WATCHER}` } });
  assert.equal((await client.next()).type, 'connection_ack');
  client.subscribe('s', subscription);
  const events = await post(WATCHER, subscription, 'text/event-stream');
  assert.equal(events.status, 200);
  let streamed = '';
  const stream = (async () => {
    for await (const chunk of events.body ?? []) streamed += new TextDecoder().decode(chunk);
  })();
  // Whether the subscription over the WebSocket has begun shows in its first event.
  await waitFor('events', async () => {
    await create();
    return client.messages.length > 0 && streamed.includes('"name":"A"');
  });

  await writeFile(join(service.folder, 'token'), 'another-token-0123456789');
  await waitFor('the other token', async () => (await post(WATCHER, '{ __typename }')).status === 401);
  client.messages.length = 0;
  await create();
  const { payload } = await client.next();
  assert.equal(payload.errors[0].extensions.code, 'UNAUTHORIZED');
  assert.equal((await client.next()).type, 'complete');
  client.socket.terminate();
  await stream;
  assert.match(streamed, /"code":"UNAUTHORIZED"[^\n]*\n\nevent: complete/);
});
