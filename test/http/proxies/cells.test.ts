import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { startTestService } from '../../support/service.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { proxies } from './proxy.ts';

const GUIDE = readFileSync(join(import.meta.dirname, '../../../docs/SCALING.md'), 'utf8');
const [, BLOCK = ''] = /```haproxy\n(.*?)```/s.exec(GUIDE) ?? [];
const haproxy = proxies.find(({ name }) => name === 'HAProxy');

/** Resolves to the status and the body. */
async function ask(url: string, host: string, body?: string): Promise<readonly [number | undefined, string]> {
  const sent = request(`${url}/users`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { host, 'content-type': 'application/json' },
  });
  sent.end(body);
  const [reply] = (await once(sent, 'response')) as [IncomingMessage];
  return [reply.statusCode, await text(reply)];
}

test('the balancer of the guide sends each tenant to its cell, and others nowhere', {
  skip: haproxy?.missing,
}, async () => {
  await using folder = await temporaryFolder();
  const cells = join(folder.path, 'cells.map');
  await writeFile(cells, 'acme.example.com cell-1\nglobex.example.com cell-2\n');
  await using one = await startTestService({ env: { HTTP_HOSTS: 'acme.example.com' } });
  await using two = await startTestService({ env: { HTTP_HOSTS: 'globex.example.com' } });
  await Promise.all([one.listen(), two.listen()]);
  const config = [
    'defaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n',
    BLOCK.replace('/etc/haproxy/cells.map', cells),
    'backend cell-1\n  server a portico-1:8000\nbackend cell-2\n  server a portico-2:8000\n',
  ].join('');
  assert.ok(haproxy);
  await using proxy = await haproxy.start([one.urls, two.urls], () => config);
  const [status] = await ask(proxy.url, 'acme.example.com', '{"name":"Ada","email":"ada@example.org"}');
  assert.equal(status, 200);
  assert.match((await ask(proxy.url, 'ACME.example.com:80'))[1], /ada@example\.org/);
  assert.deepEqual(await ask(proxy.url, 'globex.example.com'), [200, '{"status":"success","data":[]}']);
  assert.equal((await ask(proxy.url, 'other.example.com'))[0], 503);
});
