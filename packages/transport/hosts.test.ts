import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import Fastify from 'fastify';
import { trustProxy } from '../../src/config/options/doors.ts';
import { hostNameOf, OwnHosts } from '../../src/core/addresses.ts';
import { forwarding, unknownHost } from './server/guards.ts';

describe('forwarding', () => {
  const LISTS = [
    ['10.0.0.0/8', '::1'],
    ['loopback', 'uniquelocal', '2001:db8::/32'],
    ['192.0.2.7', '::ffff:198.51.100.0/120'],
    ['linklocal'],
    ['unix', 'loopback'],
  ] as const;
  const addresses = fc.oneof(
    fc.constantFrom('10.1.2.3', '127.0.0.1', '192.168.3.4', '::1', '2001:db8::5', '203.0.113.9', '192.0.2.7'),
    fc.constantFrom(
      '::ffff:10.0.0.1',
      '::ffff:198.51.100.4',
      '198.51.100.4',
      '169.254.1.1',
      'fe80::1',
      'fd00::1',
    ),
    fc.constantFrom('unknown', '10.0.0.1:80', '[::1]', '1.2.3', '010.0.0.1'),
  );
  const hosts = fc
    .array(fc.constantFrom('a.example', 'b.example:80', '[::1]:8000', ' c ', ''), { maxLength: 3 })
    .map((items) => items.join(','));
  const gap = fc.constantFrom('', ' ', '  ', '\t');
  const header = fc
    .array(fc.tuple(gap, fc.oneof(addresses, fc.constant('')), gap), { maxLength: 5 })
    .map((items) => items.map((item) => item.join('')).join(','));

  test('the client is the one that Fastify names, for its own lists too', async () => {
    for (const list of LISTS) {
      const trusts = trustProxy(list);
      assert.ok(trusts !== false);
      const follows = forwarding(trusts);
      await using theirs = Fastify({ trustProxy: list.filter((each) => each !== 'unix') });
      await using ours = Fastify({ trustProxy: trusts });
      for (const app of [theirs, ours]) app.get('/', ({ ip }) => ({ ip }));
      await fc.assert(
        fc.asyncProperty(addresses, header, async (remoteAddress, forwarded) => {
          const headers = { 'x-forwarded-for': forwarded };
          const [expected, same] = await Promise.all(
            [theirs, ours].map(
              async (app) => (await app.inject({ url: '/', remoteAddress, headers })).json().ip,
            ),
          );
          assert.equal(same, expected);
          assert.equal(follows.client(remoteAddress, headers), expected);
        }),
        { numRuns: 150 },
      );
    }
  });

  test('the host is the one that Fastify names', async () => {
    for (const trusted of [...LISTS, ['true'], []]) {
      const trusts = trustProxy(trusted);
      const follows = forwarding(trusts);
      await using app = Fastify({ trustProxy: trusts });
      app.get('/', ({ host }) => ({ host }));
      await fc.assert(
        fc.asyncProperty(addresses, hosts, fc.boolean(), async (remoteAddress, forwarded, isSent) => {
          const headers = { host: 'own.example:8000', ...(isSent && { 'x-forwarded-host': forwarded }) };
          const { host } = (await app.inject({ url: '/', remoteAddress, headers })).json();
          assert.equal(follows.host(remoteAddress, headers), host);
        }),
        { numRuns: 100 },
      );
    }
  });
});

describe('own hosts', () => {
  const LOOPBACK = [
    'localhost',
    'LOCALHOST',
    'localhost.',
    'localhost:8000',
    'localhost.:8000',
    'localhost:',
    '127.0.0.1',
    '127.0.0.1.',
    '127.0.0.1:65535',
    '127.255.255.254',
    // What a browser writes as 127.0.0.1, and a program as it was typed.
    '127.1',
    '0x7f.0.0.1',
    '2130706433',
    '[::1]',
    '[::1]:4000',
    '[0:0:0:0:0:0:0:1]',
    '[::ffff:127.0.0.1]:4000',
    '[::ffff:7f00:1]',
  ];
  const ADDRESSES = ['192.0.2.1', '192.0.2.1:80', '0.0.0.0', '[::]', '[2001:db8::1]:8000', '128.0.0.1'];
  const STRANGERS = [
    'evil.example',
    'evil.example:8000',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'a.localhost',
    'localhost..',
    '.localhost',
    'localhos',
    '::1',
    '[::1',
    '[::1]x',
    '[::1%25lo]',
    '1.2.3.4.5',
    'localhost@evil.example',
    'evil.example@localhost',
    'localhost/evil.example',
    'localhost\\evil.example',
    'localhost#',
    'localhost?',
    'localhost:80:80',
    'localhost:x',
    'localhost:123456',
    'localhost, evil.example',
    ' localhost',
    '%6cocalhost',
    'ｌocalhost',
    'ſlocalhost',
    `${'a'.repeat(300)}.example`,
    '',
  ];

  test('localhost and loopback addresses are own names, in whatever spelling and with whatever port', () => {
    const own = new OwnHosts([], 'loopback');
    for (const host of LOOPBACK) {
      assert.ok(own.has(host), host);
      assert.ok(own.has(host), `${host} again`);
    }
    for (const host of [...ADDRESSES, ...STRANGERS]) {
      assert.ok(!own.has(host), host);
      assert.ok(!own.has(host), `${host} again`);
    }
  });

  test('where all addresses are own names, other names are not', () => {
    const own = new OwnHosts([], 'all');
    for (const host of [...LOOPBACK, ...ADDRESSES]) assert.ok(own.has(host), host);
    for (const host of STRANGERS) assert.ok(!own.has(host), host);
  });

  test('names are compared without case, final dot and port', () => {
    const own = new OwnHosts(
      ['Ops.Example.org', 'portico_rest', '2001:DB8::1', '192.0.2.1', 'a..b:c'],
      'loopback',
    );
    for (const host of [
      'ops.example.org',
      'OPS.EXAMPLE.ORG.:80',
      'portico_rest',
      '[2001:db8::1]:8000',
      '192.0.2.1',
    ])
      assert.ok(own.has(host), host);
    for (const host of [
      'example.org',
      'a.ops.example.org',
      'ops.example.org.evil',
      '[2001:db8::2]',
      '192.0.2.2',
      '',
    ])
      assert.ok(!own.has(host), host);
  });

  test('what was found before changes nothing, however many there were', () => {
    const own = new OwnHosts(['app.example'], 'loopback');
    const host = fc.constantFrom(
      'localhost',
      'app.example',
      '127.0.0.1',
      'evil.example',
      'localhost.evil',
      '[::1]',
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(host, fc.nat(300)), { minLength: 200, maxLength: 400 }), (asked) => {
        for (const [name, port] of asked) {
          const authority = `${name}:${port}`;
          assert.equal(
            own.has(authority),
            new OwnHosts(['app.example'], 'loopback').has(authority),
            authority,
          );
        }
      }),
      { numRuns: 20 },
    );
  });

  test('every name by which a request asks is judged', () => {
    const own = new OwnHosts(['app.example'], 'loopback');
    const stranger = (host: string | undefined, forwarded = host ?? '', originalUrl = '/') =>
      own.strangerOf({ host: forwarded, originalUrl, headers: { host } });
    assert.equal(stranger('localhost'), undefined);
    assert.equal(stranger(undefined), undefined, 'HTTP/1.0 without Host');
    assert.equal(stranger(''), '');
    assert.equal(stranger('evil.example:8000'), 'evil.example:8000');
    // Behind a trusted proxy.
    assert.equal(stranger('127.0.0.1:8000', 'app.example'), undefined);
    assert.equal(stranger('127.0.0.1:8000', 'evil.example'), 'evil.example');
    assert.equal(stranger('evil.example', 'app.example'), 'evil.example', 'a page can send X-Forwarded-Host');
    assert.equal(stranger(undefined, 'evil.example'), 'evil.example');
    // The target in absolute form wins over Host.
    assert.equal(stranger('evil.example', 'evil.example', 'http://localhost:8000/users'), undefined);
    assert.equal(stranger('localhost', 'localhost', 'http://evil.example/users'), 'evil.example');
    assert.equal(stranger('localhost', 'localhost', 'HTTPS://evil.example?a=/'), 'evil.example');
    assert.equal(
      stranger('localhost', 'localhost', 'http://localhost@evil.example/'),
      'localhost@evil.example',
    );
    assert.equal(stranger('localhost', 'localhost', '/http://evil.example/'), undefined);
    assert.equal(stranger('localhost', 'localhost', '*'), undefined);
  });

  test('a refusal says what to set, and quotes nothing that is no host', () => {
    assert.match(unknownHost('Evil.example:80').message, /evil\.example; add it to HTTP_HOSTS/);
    assert.doesNotMatch(unknownHost('<script>').message, /script/);
    assert.equal(hostNameOf('Evil.example.:80'), 'evil.example');
    assert.equal(hostNameOf('[::1]:80'), '::1');
  });
});
