import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isLocalClient } from './console.ts';

type Headers = Readonly<Record<string, string>>;

const client = (ip: string | undefined, headers: Headers = {}, localOnly = false) =>
  isLocalClient({ ip, ips: undefined, headers } as never, localOnly);
/** As Fastify gives it where proxies are trusted: the connection's address first. */
const behind = (ips: readonly (string | undefined)[], headers: Headers, localOnly = false) =>
  isLocalClient({ ip: ips.at(-1), ips, headers } as never, localOnly);

test('a client is local by its address', () => {
  for (const ip of ['127.0.0.1', '127.8.9.10', '::1', '::ffff:127.0.0.1']) assert.ok(client(ip), ip);
  for (const ip of ['10.0.0.7', '::ffff:10.0.0.7', '127.0.0.1.example.org', '0.0.0.0', '', undefined])
    assert.ok(!client(ip), String(ip));
});

test('any sign of a proxy makes its client one from elsewhere', () => {
  for (const name of [
    'x-forwarded-for',
    'x-forwarded-host',
    'x-forwarded-proto',
    'x-forwarded-port',
    'x-forwarded-server',
    'x-forwarded-prefix',
    'x-forwarded-ssl',
    'x-forwarded',
    'forwarded',
    'forwarded-for',
    'x-original-forwarded-for',
    'via',
    'x-real-ip',
    'true-client-ip',
    'x-client-ip',
    'x-cluster-client-ip',
    'client-ip',
    'wl-proxy-client-ip',
    'proxy-client-ip',
    'proxy-connection',
    'x-proxyuser-ip',
    'x-remote-ip',
    'x-remote-addr',
    'x-originating-ip',
    'x-original-host',
    'x-original-url',
    'x-rewrite-url',
    'x-scheme',
    'front-end-https',
    'cf-connecting-ip',
    'cf-connecting-ipv6',
    'cf-ray',
    'cf-visitor',
    'cf-ipcountry',
    'cdn-loop',
    'fastly-client-ip',
    'fly-client-ip',
    'do-connecting-ip',
    'incap-client-ip',
    'x-sucuri-clientip',
    'x-azure-clientip',
    'x-azure-socketip',
    'x-azure-fdid',
    'x-arr-log-id',
    'x-appengine-user-ip',
    'x-envoy-external-address',
    'x-amzn-trace-id',
    'x-amz-cf-id',
    'x-cloud-trace-context',
    'x-akamai-edgescape',
    'x-varnish',
    'x-vercel-id',
    'tailscale-user-login',
    'x-request-start',
  ]) {
    assert.ok(!client('127.0.0.1', { [name]: '127.0.0.1' }), name);
    assert.ok(!client(undefined, { [name]: '127.0.0.1' }, true), `${name} on a Unix socket`);
    assert.ok(!behind(['127.0.0.1'], { [name]: '127.0.0.1' }), `${name} of a proxy that is not trusted`);
  }
});

test('what browsers and programs send themselves is no sign of one', () => {
  const usual = `accept accept-encoding accept-language authorization cache-control connection content-length
    content-type cookie dnt host if-none-match last-event-id origin pragma priority purpose range referer sec-ch-ua
    sec-ch-ua-mobile sec-ch-ua-platform sec-fetch-dest sec-fetch-mode sec-fetch-site sec-fetch-user sec-gpc
    sec-websocket-key te traceparent tracestate transfer-encoding upgrade-insecure-requests user-agent x-api-key
    x-portico-console x-request-id x-requested-with`;
  const headers = Object.fromEntries(usual.split(/\s+/).map((name) => [name, '1']));
  assert.ok(client('127.0.0.1', headers));
});

test('a trusted proxy may speak for a client of this machine, if nobody else is named', () => {
  const forwarded = { 'x-forwarded-for': '127.0.0.1', 'x-forwarded-host': 'localhost', via: '1.1 proxy' };
  assert.ok(behind(['127.0.0.1', '127.0.0.1'], forwarded));
  assert.ok(behind(['127.0.0.1', '::1'], { 'x-forwarded-for': '::1', 'x-real-ip': '::1' }));
  assert.ok(behind(['127.0.0.1'], {}), 'without a proxy in between');
  const remote: readonly [readonly string[], Headers][] = [
    [['127.0.0.1', '203.0.113.7'], { 'x-forwarded-for': '203.0.113.7' }],
    // It trusts the nearest proxy alone.
    [['127.0.0.1', '127.0.0.1'], { 'x-forwarded-for': '203.0.113.7, 127.0.0.1' }],
    [['127.0.0.1', '127.0.0.1'], { 'x-forwarded-for': '127.0.0.1', 'x-real-ip': '203.0.113.7' }],
    [['127.0.0.1', '127.0.0.1'], { 'x-forwarded-for': '127.0.0.1', 'cf-connecting-ip': '203.0.113.7' }],
    [['127.0.0.1', '127.0.0.1'], { 'x-forwarded-for': '127.0.0.1', forwarded: 'for=203.0.113.7' }],
    [['127.0.0.1', '127.0.0.1'], { 'x-forwarded-for': 'unknown, 127.0.0.1' }],
    [['203.0.113.7'], {}],
  ];
  for (const [ips, headers] of remote) assert.ok(!behind(ips, headers), JSON.stringify(headers));
});

test('who comes without an address is local on a Unix socket alone', () => {
  assert.ok(!client(undefined), 'a connection that is gone');
  assert.ok(client(undefined, {}, true));
  assert.ok(behind([undefined, '127.0.0.1'], { 'x-forwarded-for': '127.0.0.1' }, true));
  assert.ok(!behind([undefined, '203.0.113.7'], { 'x-forwarded-for': '203.0.113.7' }, true));
  assert.ok(!client('203.0.113.7', {}, true));
});
