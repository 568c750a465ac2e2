import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { managementApp } from '../../../test/support/management-app.ts';

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const FORWARDED = {
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'ops.example',
  'x-forwarded-prefix': '/p',
};

test('the links are named as in Actuator', async () => {
  await using app = await managementApp();
  const { _links } = (await app.inject('/actuator')).json();
  const templates = Object.fromEntries(
    Object.entries(_links as Record<string, { href: string; templated: boolean }>)
      .filter(([, { templated }]) => templated)
      .map(([name, { href }]) => [name, href.slice(href.indexOf('/actuator'))]),
  );
  assert.deepEqual(templates, {
    'health-path': '/actuator/health/{*path}',
    'metrics-requiredMetricName': '/actuator/metrics/{requiredMetricName}',
    'env-toMatch': '/actuator/env/{toMatch}',
  });
});

test('what a proxy says counts only when it is trusted', async () => {
  for (const [trustForwarded, start] of [
    [undefined, 'http://inner:8080'],
    [false, 'http://inner:8080'],
    [true, 'https://ops.example/p'],
  ] as const) {
    await using app = await managementApp({ trustForwarded });
    const headers = { host: 'inner:8080', ...FORWARDED };
    const { _links } = (await app.inject({ url: '/actuator', headers })).json();
    assert.equal(_links.self.href, `${start}/actuator`);
    assert.equal(_links['env-toMatch'].href, `${start}/actuator/env/{toMatch}`);
  }
});

test('a browser gets a page, everybody else JSON', async () => {
  await using app = await managementApp();
  for (const accept of [BROWSER, 'text/html', 'application/json;q=0.9, text/html']) {
    const { statusCode, headers } = await app.inject({ url: '/actuator', headers: { accept } });
    assert.equal(statusCode, 200);
    assert.equal(headers['content-type'], 'text/html; charset=utf-8', accept);
    assert.equal(headers.vary, 'accept');
    assert.equal(headers['cache-control'], 'no-store');
  }
  for (const accept of [
    undefined,
    '*/*',
    'application/json, text/html',
    'application/json',
    'text/html;q=0',
  ]) {
    const { headers } = await app.inject({
      url: '/actuator',
      headers: accept === undefined ? {} : { accept },
    });
    assert.match(String(headers['content-type']), /json$/, String(accept));
    assert.equal(headers.vary, 'accept');
  }
});

test('the page loads nothing, runs nothing, and its style is the one that its policy allows', async () => {
  await using app = await managementApp();
  const { body, headers } = await app.inject({ url: '/actuator', headers: { accept: BROWSER } });
  const policy = String(headers['content-security-policy']);
  assert.match(policy, /default-src 'none'/);
  assert.doesNotMatch(policy, /unsafe|script-src/);
  const [, style = ''] = /<style>([\s\S]*?)<\/style>/.exec(body) ?? [];
  const digest = createHash('sha256').update(style).digest('base64');
  assert.ok(policy.includes(`'sha256-${digest}'`));
  assert.doesNotMatch(body, /<script|\son\w+=|\sstyle=|https?:\/\//);
  assert.match(style, /color-scheme: light dark/);
});

test('each link of the page leads to an endpoint, with one line about it', async () => {
  await using app = await managementApp({
    build: { version: '1', artifact: 'a', name: '<b>&"' },
    endpoints: [{ id: 'mine', read: () => 'x' }],
    shutDown: () => {},
    access: { endpoints: new Map([['shutdown', 'unrestricted']]) },
  });
  const { body } = await app.inject({ url: '/actuator', headers: { accept: BROWSER } });
  assert.ok(body.includes('<h1>&lt;b&gt;&amp;&quot; 1</h1>'));
  const hrefs = [...body.matchAll(/href="(\.[^"]*)"/g)].map(([, href = '']) => href);
  assert.ok(hrefs.length > 5);
  for (const href of hrefs) {
    const { pathname } = new URL(href, 'http://any/actuator');
    // A profile takes its time, and a scrape is a stream; that they are there is enough.
    assert.equal((await app.inject({ method: 'HEAD', url: pathname })).statusCode, 200, href);
  }
  assert.ok(hrefs.includes('./actuator/mine'));
  assert.ok(body.includes('<code>POST /actuator/shutdown</code>'));
  assert.equal(body.match(/<dt>/g)?.length, body.match(/<dd>[^<]{10,}\.<\/dd>/g)?.length);
});
