import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import Fastify from 'fastify';
import { managementApp } from '../../test/support/management-app.ts';

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const FORWARDED = {
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'ops.example',
};

test('the links are named as in Actuator', async () => {
  await using app = await managementApp({ endpoints: [{ id: 'mine', path: 'name?', read: () => 'x' }] });
  const { _links } = (await app.inject('/actuator')).json();
  const templates = Object.fromEntries(
    Object.entries(_links as Record<string, { href: string; templated: boolean }>)
      .filter(([, { templated }]) => templated)
      .map(([name, { href }]) => [name, href.slice(href.indexOf('/actuator'))]),
  );
  assert.match(_links.mine.href, /\/actuator\/mine$/);
  assert.deepEqual(templates, {
    'health-path': '/actuator/health/{*path}',
    'metrics-requiredMetricName': '/actuator/metrics/{requiredMetricName}',
    'env-toMatch': '/actuator/env/{toMatch}',
    'openapi-door': '/actuator/openapi/{door}',
    'docs-file': '/actuator/docs/{file}',
    'mine-name': '/actuator/mine/{name}',
  });
});

test('the links follow a proxy that the application trusts', async () => {
  for (const [trustProxy, remoteAddress, start] of [
    [false, '10.0.0.1', 'http://inner:8080'],
    ['10.0.0.1', '10.0.0.1', 'https://ops.example'],
    ['10.0.0.1', '10.0.0.2', 'http://inner:8080'],
  ] as const) {
    await using app = await managementApp({}, Fastify({ trustProxy }));
    const headers = { host: 'inner:8080', ...FORWARDED };
    const { _links } = (await app.inject({ url: '/actuator', headers, remoteAddress })).json();
    assert.equal(_links.self.href, `${start}/actuator`);
    assert.equal(_links['env-toMatch'].href, `${start}/actuator/env/{toMatch}`);
  }
});

test('whatever a trusted proxy says, a link begins with an origin', async () => {
  await using app = await managementApp({}, Fastify({ trustProxy: true }));
  for (const [proto, host, start] of [
    ['javascript', 'ops.example', 'http://ops.example'],
    ['https, javascript:', 'ops.example', 'http://ops.example'],
    ['https', 'a"b', 'https://localhost:80'],
    ['https', 'u@h/x', 'https://localhost:80'],
    ['https', '[2001:db8::1]:8443', 'https://[2001:db8::1]:8443'],
  ] as const) {
    const headers = { 'x-forwarded-proto': proto, 'x-forwarded-host': host };
    const { _links } = (await app.inject({ url: '/actuator', headers })).json();
    const { href } = _links.self;
    // An injected request has no address of its own.
    assert.equal(href.replace(/localhost:\d+/, 'localhost:80'), `${start}/actuator`);
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
