import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { startTestService } from '../../support/service.ts';
import { settingsOf, shownCommand } from '../../support/shown-commands.ts';
import { proxies } from './proxy.ts';

/** How docs/PROXIES.md starts a service behind a proxy on the same machine. */
const SETTINGS = settingsOf(shownCommand('docs/PROXIES.md', /^HTTP_HOSTS=.* npm start$/));
const PUBLIC = String(SETTINGS.HTTP_HOSTS);
const READS = ['/users', '/graphql?query=%7Bhello%7D', '/actuator/env'];
const USER = '{"name":"Ada","email":"ada@example.org"}';

/** Asks with any Host; resolves to the status and the code of the refusal. */
async function ask(
  url: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body?: string,
): Promise<string> {
  const method = body === undefined ? 'GET' : 'POST';
  const sent = request(url + path, { method, headers: { 'content-type': 'application/json', ...headers } });
  sent.end(body);
  const [reply] = (await once(sent, 'response')) as [IncomingMessage];
  await text(reply);
  const code = reply.headers['x-error-code'];
  return code === undefined ? String(reply.statusCode) : `${reply.statusCode} ${code}`;
}

for (const { name, missing, start } of proxies) {
  test(`behind ${name} on the same machine the doors take the public name and no other`, {
    skip: missing,
  }, async () => {
    await using service = await startTestService({ env: SETTINGS });
    await service.listen();
    await using proxy = await start([service.urls]);
    for (const path of READS) {
      assert.equal(await ask(proxy.url, path, { host: PUBLIC }), '200', path);
      assert.equal(await ask(proxy.url, path, { host: 'evil.example' }), '403 UNKNOWN_HOST', path);
    }
    const event = '{"event":"new_commit"}';
    assert.equal(await ask(proxy.url, '/webhook', { host: 'any.example' }, event), '200');
    const own = { host: PUBLIC, origin: `http://${PUBLIC}` };
    assert.equal(await ask(proxy.url, '/users', own, USER), '200');
    const other = { host: PUBLIC, origin: 'http://evil.example' };
    assert.equal(await ask(proxy.url, '/users', other, USER), '403 CROSS_SITE');
    assert.equal(await ask(proxy.url, '/actuator/console', { host: PUBLIC }), '200', 'the client is local');
  });
}

const nginx = proxies.find(({ name }) => name === 'nginx');

test('a proxy that sends a host of its own needs that one too', {
  skip: nginx?.missing ?? true,
}, async () => {
  // nginx sends the name of the upstream then.
  const ownHost = (config: string) => config.replace('proxy_set_header Host $host;', '');
  const withUpstream = { ...SETTINGS, HTTP_HOSTS: `${PUBLIC},portico_rest` };
  for (const [env, expected] of [
    [SETTINGS, '403 UNKNOWN_HOST'],
    [withUpstream, '200'],
  ] as const) {
    await using service = await startTestService({ env });
    await service.listen();
    await using proxy = await (nginx ?? assert.fail()).start([service.urls], ownHost);
    assert.equal(await ask(proxy.url, '/users', { host: PUBLIC }), expected);
    assert.equal(await ask(proxy.url, '/users', { host: 'evil.example' }), '403 UNKNOWN_HOST');
  }
});
