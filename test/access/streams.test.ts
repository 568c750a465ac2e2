import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { follow } from '../rest/support/rest-door.ts';
import { startTestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';
import { bearer, moduleWith } from './support/tokens.ts';

const WATCHER = 'watcher-token-0123456789';
const WRITER = 'writer-token-0123456789';
const MODULE = `import { writeFileSync } from 'node:fs';
writeFileSync(new URL('./token', import.meta.url), '${WATCHER}');
export default { limits: { api: { maxFailures: 0 } }, api: { required: 'all', tokens: {
  watcher: { secret: { file: 'token' }, scopes: ['users:read'] },
  writer: { secret: '${WRITER}', scopes: ['users:write'] },
} } };`;

test('the changes of users end when the token that follows them is replaced, before the next change', async () => {
  await using service = await startTestService({
    module: MODULE,
    env: { INTERFACES: 'rest' },
    database: 'file',
  });
  await service.listen();
  const url = service.urls.rest ?? '';
  const authorization = `Bearer ${WATCHER}`;
  const create = (name: string) =>
    fetch(`${url}/users`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${WRITER}` },
      body: JSON.stringify({ name, email: 'a@b' }),
    });
  await using stream = await follow(url, { authorization });
  assert.equal(stream.response.status, 200);
  await stream.next();
  await create('seen');
  assert.equal(JSON.parse((await stream.next())?.data ?? '').name, 'seen');

  await writeFile(join(service.folder, 'token'), 'another-token-0123456789');
  await waitFor(
    'the other token',
    async () => (await fetch(`${url}/users/1`, { headers: { authorization } })).status === 401,
  );
  await create('unseen');
  let event = await stream.next();
  // A block without data is a sign of life, or says when to come back.
  while (event?.data === '') event = await stream.next();
  assert.equal(event, undefined);
});

test('an import is refused before a byte of its body is there', async () => {
  await using service = await startTestService({
    module: moduleWith(),
    env: { INTERFACES: 'rest', API_REQUIRED: 'write', API_MAX_FAILURES: '0' },
  });
  await service.listen();
  for (const [headers, status] of [
    [{}, 401],
    [{ authorization: bearer('reader') }, 403],
  ] as const) {
    const sent = request(`${service.urls.rest}/users`, {
      method: 'POST',
      headers: { 'content-type': 'text/csv', ...headers },
    });
    sent.on('error', () => {});
    sent.flushHeaders();
    const [reply] = (await once(sent, 'response')) as [IncomingMessage];
    assert.equal(reply.statusCode, status);
    sent.destroy();
  }
});
