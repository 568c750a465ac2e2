import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentDns, startDns } from '../../../test/support/dns-server.ts';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { AttemptError, NotSentError } from '../../inbox/dispatch/target.ts';
import { HostResolver, type ResolverOptions } from './host-resolver.ts';

const LONG = 600_000;

/** A resolver with files of its own, which knows nothing of this machine. */
async function resolverOf(
  servers: readonly string[],
  files: { readonly hosts?: string; readonly resolvConf?: string } = {},
  options: ResolverOptions = {},
) {
  const folder = await temporaryFolder();
  const [hostsFile, resolvConf] = [join(folder.path, 'hosts'), join(folder.path, 'resolv.conf')];
  await writeFile(hostsFile, files.hosts ?? '');
  await writeFile(resolvConf, files.resolvConf ?? '');
  const resolver = new HostResolver({ servers, hostsFile, resolvConf, limit: LONG, ...options });
  return {
    resolver,
    async [Symbol.asyncDispose]() {
      resolver[Symbol.dispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

test('both families are asked for, and an answer is asked for once', async () => {
  await using dns = await startDns({ 'a.test': ['192.0.2.1', '192.0.2.2', '2001:db8::1'] });
  await using made = await resolverOf([dns.address]);
  const [found, again] = await Promise.all([
    made.resolver.resolve('a.test'),
    made.resolver.resolve('a.test'),
  ]);
  assert.deepEqual(found.map(({ address }) => address).toSorted(), ['192.0.2.1', '192.0.2.2', '2001:db8::1']);
  assert.equal(again, found);
  assert.equal(await made.resolver.resolve('a.test'), found);
  assert.deepEqual(dns.asked().toSorted(), ['A a.test', 'AAAA a.test']);
});

test('one family is enough, and the silence of the other one holds up nothing', async () => {
  await using dns = await startDns({ 'a.test': ['192.0.2.1'] }, { silentFor: 'AAAA' });
  await using made = await resolverOf([dns.address]);
  assert.deepEqual(await made.resolver.resolve('a.test'), [{ address: '192.0.2.1', family: 4 }]);
});

test('a DNS server that does not answer ends the look-ups of its names at the limit, and no others', async () => {
  await using dns = await silentDns();
  await using made = await resolverOf(
    [dns.address],
    { hosts: '192.0.2.7 known.test # a comment\n' },
    { limit: 300 },
  );
  const { resolver } = made;
  const dead = Array.from({ length: 40 }, (_, i) => resolver.resolve(`dead-${i}.test`));
  const failures = Promise.all(
    dead.map((each) =>
      each.then(
        () => assert.fail('it was found'),
        (error: unknown) => error,
      ),
    ),
  );
  assert.deepEqual(await resolver.resolve('known.test'), [{ address: '192.0.2.7', family: 4 }]);
  for (const error of await failures) {
    assert.ok(error instanceof AttemptError);
    assert.match(error.message, /the DNS look-up of dead-\d+\.test had no answer within 300 ms/);
  }
  const asked = dns.asked().length;
  await assert.rejects(resolver.resolve('dead-0.test'), /had no answer/);
  assert.equal(dns.asked().length, asked, 'the failure is kept for a while');
});

test('the end of the resolver ends look-ups at once', async () => {
  await using dns = await silentDns();
  await using made = await resolverOf([dns.address]);
  const pending = made.resolver.resolve('dead.test');
  const refused = assert.rejects(pending, NotSentError);
  made.resolver[Symbol.dispose]();
  await refused;
  await assert.rejects(made.resolver.resolve('other.test'), NotSentError);
});

test('localhost and the names of the hosts file need no DNS', async () => {
  await using dns = await silentDns();
  const hosts = '127.0.0.1 box\tbox.test\n\n# 192.0.2.9 no.test\nfe80::1 BOX\nnonsense x\n';
  await using made = await resolverOf([dns.address], { hosts });
  const addresses = async (name: string) => (await made.resolver.resolve(name)).map(({ address }) => address);
  assert.deepEqual(await addresses('localhost'), ['127.0.0.1', '::1']);
  assert.deepEqual(await addresses('a.localhost'), ['127.0.0.1', '::1']);
  assert.deepEqual(await addresses('box'), ['127.0.0.1', 'fe80::1']);
  assert.deepEqual(await addresses('Box.Test'), ['127.0.0.1']);
  assert.deepEqual(await addresses('192.0.2.1'), ['192.0.2.1']);
  assert.deepEqual(dns.asked(), []);
});

test('short names are looked up as resolv.conf says', async () => {
  await using dns = await startDns({
    'billing.shop.cluster.test': ['192.0.2.1'],
    'full.test': ['192.0.2.2'],
  });
  const resolvConf = 'nameserver 192.0.2.53\nsearch cluster.test. other.test\noptions timeout:1 ndots:2\n';
  await using made = await resolverOf([dns.address], { resolvConf });
  assert.deepEqual(await made.resolver.resolve('billing.shop'), [{ address: '192.0.2.1', family: 4 }]);
  assert.deepEqual(await made.resolver.resolve('full.test'), [{ address: '192.0.2.2', family: 4 }]);
  const asked = [...new Set(dns.asked().map((each) => each.split(' ')[1]))];
  assert.deepEqual(asked, [
    'billing.shop.cluster.test',
    'full.test.cluster.test',
    'full.test.other.test',
    'full.test',
  ]);
  await made.resolver.resolve('full.test.');
});

test('a server that fails is a failure that says so', async () => {
  await using dns = await startDns({}, { failing: true });
  await using made = await resolverOf([dns.address]);
  await assert.rejects(made.resolver.resolve('a.test'), /the DNS look-up of a\.test failed: ESERVFAIL/);
});
