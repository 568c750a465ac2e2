import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const BROWSER = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };

test('the root of a door says what is behind it: a page for a browser, JSON for a program', async () => {
  await using place = await temporaryFolder();
  await using portico = startPortico({ cwd: place.path, env: { GRAPHQL_PATH: '/api' } });
  await portico.ready();
  for (const [door, path] of [
    ['graphql', '/api'],
    ['management', '/actuator'],
    ['webhook', '/webhook'],
  ] as const) {
    const url = portico.urls[door] ?? '';
    const json = await fetch(url);
    assert.equal(json.headers.get('content-type'), 'application/json');
    const { paths } = (await json.json()) as { paths: Record<string, string> };
    assert.ok(Object.hasOwn(paths, path), door);
    const page = await fetch(url, { headers: BROWSER });
    assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
    assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'/);
    assert.equal(page.headers.get('vary'), 'accept');
    const html = await page.text();
    for (const [, href = ''] of html.matchAll(/<a href="([^"]+)"/g)) {
      const followed = await fetch(new URL(href, page.url), { headers: BROWSER });
      assert.equal(followed.status, 200, href);
    }
    assert.equal(html.includes('<a '), door !== 'webhook', 'nobody can open what takes POST alone');
    assert.ok(html.includes(path));
  }
  // CONTRACT.md#errors
  const root = await fetch(portico.urls.rest ?? '', { headers: BROWSER });
  assert.deepEqual(
    [root.status, await root.text()],
    [404, '{"status":"error","message":"Endpoint not found"}'],
  );
});

test('every path that a door does not have is refused alike', async () => {
  await using place = await temporaryFolder();
  await using portico = startPortico({ cwd: place.path });
  await portico.ready();
  for (const [door, paths] of Object.entries({
    graphql: ['/none', '/graphql/x'],
    rest: ['/none', '/users/1/2'],
    management: ['/none', '/livez/x', '/actuator/none', '/actuator/health/none', '/actuatorx'],
    webhook: ['/none', '/webhook/none', '/webhook/x/y'],
  })) {
    const replies = new Set<string>();
    for (const path of paths) {
      const reply = await fetch(`${portico.urls[door]}${path}`);
      const { status, headers } = reply;
      assert.equal(status, 404);
      replies.add(`${headers.get('x-error-code')} ${headers.get('content-type')} ${await reply.text()}`);
    }
    assert.equal(replies.size, 1, [...replies].join('\n'));
  }
});
