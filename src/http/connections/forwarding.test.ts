import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import Fastify from 'fastify';
import { trustProxy } from '../../config/options/trusted-proxies.ts';
import { forwarding } from './forwarding.ts';

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
