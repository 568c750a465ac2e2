import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, isIPv4, type Server } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { silentDns, startDns } from '../../../test/support/dns-server.ts';
import { newDelivery } from '../../../test/support/new-delivery.ts';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { openDatabase } from '../../sql/open.ts';
import { Dispatcher } from '../dispatch/dispatcher.ts';
import { AttemptError, NotSentError } from '../dispatch/target.ts';
import {
  guardedLookup,
  HostResolver,
  isPrivateAddress,
  isPrivateHost,
  Network,
  type NetworkOptions,
  PrivateAddressError,
  type ResolverOptions,
} from './addresses.ts';
import { createPoster, forwardTarget } from './forward.ts';

describe('host resolver', () => {
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
    assert.deepEqual(found.map(({ address }) => address).toSorted(), [
      '192.0.2.1',
      '192.0.2.2',
      '2001:db8::1',
    ]);
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
    const addresses = async (name: string) =>
      (await made.resolver.resolve(name)).map(({ address }) => address);
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
});

describe('guarded lookup', () => {
  type Found = { readonly error: Error | null; readonly address: unknown };

  const resolver = new HostResolver();
  const look = (hostname: string, all: boolean, allowPrivate = false) =>
    new Promise<Found>((resolve) => {
      guardedLookup(resolver, allowPrivate)(hostname, { all }, (error, address) =>
        resolve({ error, address }),
      );
    });

  test('a name with a private address is refused without a retry, with advice', async () => {
    for (const all of [true, false]) {
      const { error, address } = await look('localhost', all);
      assert.ok(error instanceof PrivateAddressError);
      assert.equal(error.retryAfter, 'never');
      assert.match(error.message, /localhost is a private address; set allowPrivate/);
      assert.equal(address, '');
    }
  });

  test('a private address is given where that is allowed', async () => {
    const { error, address } = await look('localhost', false, true);
    assert.equal(error, null);
    assert.match(String(address), /^(?:127\.0\.0\.1|::1)$/);
  });

  test('a public address is given in the form that was asked for', async () => {
    assert.deepEqual(await look('8.8.8.8', false), { error: null, address: '8.8.8.8' });
    assert.deepEqual(await look('8.8.8.8', true), {
      error: null,
      address: [{ address: '8.8.8.8', family: 4 }],
    });
  });

  test('hosts that are addresses themselves, in every spelling that a URL knows', () => {
    for (const host of [
      '127.0.0.1',
      '127.1',
      '0x7f.1',
      '2130706433',
      '017700000001',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '[::ffff:10.1.2.3]',
      '[fd00::1]',
      '169.254.169.254',
      '１２７.0.0.1',
    ]) {
      const { hostname } = new URL(`http://${host}/`);
      assert.ok(isPrivateHost(hostname), host);
    }
    for (const host of ['8.8.8.8', '[2606:4700::1111]', 'example.com', 'localhost']) {
      assert.ok(!isPrivateHost(new URL(`http://${host}/`).hostname), host);
    }
  });
});

describe('network', () => {
  const LONG = 600_000;
  const never = new AbortController().signal;
  const failure = (promise: Promise<unknown>) =>
    promise.then(
      () => assert.fail('it succeeded'),
      (error: unknown) => error,
    );

  async function listen(server: Server) {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  }

  function poster(options: NetworkOptions) {
    const network = new Network({ limit: LONG, connectTime: LONG, ...options });
    const posting = createPoster({ network, allowPrivate: true });
    const post = (url: string) =>
      posting.post({ url: new URL(url), headers: {}, body: Buffer.from('1'), signal: never });
    return {
      network,
      posting,
      post,
      [Symbol.dispose]() {
        network[Symbol.dispose]();
        posting[Symbol.dispose]();
      },
    };
  }

  /** A receiver that answers all. */
  async function receiver() {
    const server = createHttpServer((_request, response) => response.writeHead(204).end());
    const port = await listen(server);
    return {
      port,
      async [Symbol.asyncDispose]() {
        server.closeAllConnections();
        server.close();
        await once(server, 'close');
      },
    };
  }

  /** Takes connections and says nothing, so that no TLS connection opens. */
  async function silentHost() {
    let connections = 0;
    const server = createServer((socket) => {
      connections++;
      socket.on('error', () => {}).resume();
    });
    const port = await listen(server);
    return {
      url: `https://127.0.0.1:${port}/`,
      connections: () => connections,
      async [Symbol.asyncDispose]() {
        server.close();
        await once(server, 'close');
      },
    };
  }

  test('names without an answer delay no others: a good host by name is reached meanwhile', async () => {
    await using dns = await silentDns();
    await using good = await receiver();
    using at = poster({ servers: [dns.address] });
    const dead = Promise.all(
      Array.from({ length: 40 }, (_, i) => failure(at.post(`http://dead-${i}.test/`))),
    );
    await waitFor('the names to be asked for', () => dns.asked().length >= 40);
    for (let i = 0; i < 20; i++) {
      assert.equal((await at.post(`http://localhost:${good.port}/`)).status, 204);
    }
    at[Symbol.dispose]();
    for (const error of await dead) assert.ok(error instanceof NotSentError, String(error));
  });

  test('all that waits for a silent host waits once, and then it is left alone', async () => {
    await using silent = await silentHost();
    await using good = await receiver();
    using at = poster({ connectTime: 300, silence: LONG });
    const errors = await Promise.all(Array.from({ length: 8 }, () => failure(at.post(silent.url))));
    for (const error of errors) {
      assert.ok(error instanceof AttemptError);
      assert.match(error.message, /did not accept a connection within 300 ms/);
    }
    const connections = silent.connections();
    const later = await failure(at.post(silent.url));
    assert.ok(later instanceof AttemptError);
    assert.match(later.message, /did not accept a connection a moment ago/);
    assert.ok(Number(later.retryAfter) > 0);
    assert.equal(silent.connections(), connections, 'no connection was opened');
    assert.equal(
      (await at.post(`http://127.0.0.1:${good.port}/`)).status,
      204,
      'another port is another host',
    );
  });

  test('the end of the network ends what has no connection yet, as not sent', async () => {
    await using silent = await silentHost();
    using at = poster({});
    const pending = failure(at.post(silent.url));
    await waitFor('the connection to be begun', () => silent.connections() === 1);
    at.network[Symbol.dispose]();
    assert.ok((await pending) instanceof NotSentError);
    assert.ok((await failure(at.post(silent.url))) instanceof NotSentError);
  });

  test('a stop releases what waits for a dead name; the attempt does not count', async () => {
    await using dns = await silentDns();
    await using database = openDatabase('sqlite::memory:');
    const { inbox } = database;
    using at = poster({ servers: [dns.address] });
    const limits = { concurrency: 3, timeout: LONG, maxAttempts: 1, backoff: { base: 1, cap: 1 } };
    const settings = { name: 'dead', url: new URL('http://dead.test/'), secrets: [], allowPrivate: true };
    const target = forwardTarget(settings, limits, undefined, at.posting, { maxBodyBytes: 1 });
    await inbox.append(newDelivery({ jobs: [{ target: target.name, orderKey: null }] }));
    const settled: string[] = [];
    const events = {
      settled: (_job: unknown, outcome: string) => void settled.push(outcome),
      leaseLost: () => assert.fail('lost'),
      overdue: () => assert.fail('overdue'),
      storeFailed: (error: unknown) => assert.fail(String(error)),
    };
    const dispatcher = new Dispatcher({ inbox, targets: [target], lease: LONG, events });
    dispatcher.start();
    await waitFor('the name to be asked for', () => dns.asked().length > 0);
    at.network[Symbol.dispose]();
    await dispatcher.stop(never);
    assert.deepEqual(settled, ['released']);
    const [again] = await inbox.claim(target.name, 9, 'other', LONG, { now: Date.now() + LONG });
    assert.equal(again?.attempt, 1);
  });
});

describe('private address', () => {
  test('the first and the last address of each network, and their neighbours outside', () => {
    for (const [first, last, before, after] of [
      ['0.0.0.0', '0.255.255.255', undefined, '1.0.0.0'],
      ['10.0.0.0', '10.255.255.255', '9.255.255.255', '11.0.0.0'],
      ['100.64.0.0', '100.127.255.255', '100.63.255.255', '100.128.0.0'],
      ['127.0.0.0', '127.255.255.255', '126.255.255.255', '128.0.0.0'],
      ['169.254.0.0', '169.254.255.255', '169.253.255.255', '169.255.0.0'],
      ['172.16.0.0', '172.31.255.255', '172.15.255.255', '172.32.0.0'],
      ['192.168.0.0', '192.168.255.255', '192.167.255.255', '192.169.0.0'],
      ['198.18.0.0', '198.19.255.255', '198.17.255.255', '198.20.0.0'],
      ['224.0.0.0', '255.255.255.255', '223.255.255.255', undefined],
      ['fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'fbff::', 'fe00::'],
      ['fe80::', 'feff:ffff::', undefined, undefined],
      ['ff00::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', undefined, undefined],
      ['::', '::1', undefined, '::2:0:0'],
      ['2001:db8::', '2001:db8:ffff::', '2001:db7::', '2001:db9::'],
    ] as const) {
      assert.ok(isPrivateAddress(first), first);
      assert.ok(isPrivateAddress(last), last);
      for (const outside of [before, after]) {
        if (outside !== undefined) assert.ok(!isPrivateAddress(outside), outside);
      }
    }
  });

  test('public addresses', () => {
    for (const address of [
      '8.8.8.8',
      '93.184.216.34',
      '2606:4700::1111',
      '2a00:1450:4001::200e',
      '::ffff:8.8.8.8',
    ]) {
      assert.ok(!isPrivateAddress(address), address);
    }
  });

  /** An address as a whole number, and whether that is private, by arithmetic alone. */
  const octets = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255));
  const near = fc.oneof(
    octets,
    fc.tuple(
      fc.constantFrom(0, 10, 100, 127, 169, 172, 192, 198, 203, 224, 240, 255),
      fc.constantFrom(0, 2, 15, 16, 18, 19, 20, 31, 32, 51, 63, 64, 88, 127, 128, 168, 254),
      fc.constantFrom(0, 2, 99, 100, 113, 255),
      fc.nat(255),
    ),
  );

  function byArithmetic([a, b, c]: readonly [number, number, number, number]): boolean {
    if ([0, 10, 127].includes(a) || a >= 224) return true;
    if (a === 100) return b >= 64 && b < 128;
    if (a === 169) return b === 254;
    if (a === 172) return b >= 16 && b < 32;
    if (a === 192) return b === 168 || (b === 0 && (c === 0 || c === 2)) || (b === 88 && c === 99);
    if (a === 198) return b === 18 || b === 19 || (b === 51 && c === 100);
    return a === 203 && b === 0 && c === 113;
  }

  const hex = (high: number, low: number) => ((high << 8) | low).toString(16);

  test('an IPv4 address is judged alike in all of its clothes', () => {
    fc.assert(
      fc.property(near, (address) => {
        const [a, b, c, d] = address;
        const plain = address.join('.');
        const expected = byArithmetic(address);
        assert.ok(isIPv4(plain));
        assert.equal(isPrivateAddress(plain), expected, plain);
        for (const mapped of [
          `::ffff:${plain}`,
          `::FFFF:${plain}`,
          `::ffff:${hex(a, b)}:${hex(c, d)}`,
          `0:0:0:0:0:ffff:${hex(a, b)}:${hex(c, d)}`,
          `::ffff:${plain}%eth0`,
        ]) {
          assert.equal(isPrivateAddress(mapped), expected, mapped);
        }
        // A gateway that translates would reach the machine, so none of these goes out.
        for (const carried of [`::${plain}`, `64:ff9b::${plain}`, `2002:${hex(a, b)}:${hex(c, d)}::1`]) {
          assert.ok(isPrivateAddress(carried), carried);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test('an IPv6 zone changes nothing, and any other text counts as private', () => {
    assert.ok(isPrivateAddress('fe80::1%eth0'));
    fc.assert(
      fc.property(fc.string(), (text) => {
        fc.pre(!/[0-9a-f]/i.test(text));
        assert.ok(text === '::' || isPrivateAddress(text), text);
      }),
    );
    for (const text of ['', 'localhost', '127.1', '0x7f000001', '2130706433', '127.0.0.1 ', '[::1]']) {
      assert.ok(isPrivateAddress(text), text);
    }
  });
});
