import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, isIP, isIPv4, type Server } from 'node:net';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { newDelivery } from '../../../test/support/new-delivery.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { openDatabase } from '../../sql/open.ts';
import { Dispatcher } from '../dispatch/dispatcher.ts';
import { AttemptError } from '../dispatch/target.ts';
import {
  guardedLookup,
  HostResolver,
  isPrivateAddress,
  isPrivateHost,
  lookupSlots,
  Network,
  NotSentError,
  PrivateAddressError,
} from './addresses.ts';
import { forwardTarget } from './forward.ts';
import { createPoster } from './poster.ts';

type NetworkOptions = NonNullable<ConstructorParameters<typeof Network>[0]>;

/** A resolver of the system that knows these names, and never answers for those that begin with `dead`. */
function system(names: Readonly<Record<string, readonly string[]>> = {}) {
  const asked: string[] = [];
  const answers = new Map<string, () => void>();
  return {
    asked,
    /** Lets the look-up of a dead name end. */
    answer: (host: string) => answers.get(host)?.(),
    async lookup(host: string) {
      asked.push(host);
      if (host.startsWith('dead')) await new Promise<void>((resolve) => answers.set(host, resolve));
      const found = names[host];
      if (found === undefined) throw Object.assign(new Error(`getaddrinfo ${host}`), { code: 'ENOTFOUND' });
      return found.map((address) => ({ address, family: isIP(address) }));
    },
  };
}

const LONG = 600_000;

describe('host resolver', () => {
  const text = async (found: ReturnType<HostResolver['resolve']>) =>
    (await found).map(({ address }) => address).join();

  test('all addresses of a host are looked up once for all attempts', async () => {
    const { lookup, asked } = system({ 'a.test': ['192.0.2.1', '2001:db8::1'] });
    using resolver = new HostResolver({ lookup });
    const [found, again] = await Promise.all([resolver.resolve('a.test'), resolver.resolve('a.test')]);
    assert.deepEqual(found, [
      { address: '192.0.2.1', family: 4 },
      { address: '2001:db8::1', family: 6 },
    ]);
    assert.equal(again, found);
    assert.equal(await resolver.resolve('a.test'), found);
    assert.deepEqual(asked, ['a.test']);
  });

  test('a failure names its code and is kept for a while', async () => {
    const { lookup, asked } = system();
    using resolver = new HostResolver({ lookup });
    for (let i = 0; i < 2; i++) {
      await assert.rejects(resolver.resolve('a.test'), (error) => {
        assert.ok(error instanceof AttemptError);
        assert.equal(error.message, 'the DNS look-up of a.test failed: ENOTFOUND');
        return true;
      });
    }
    assert.deepEqual(asked, ['a.test']);
  });

  test('the system has localhost, and no name that is reserved for unknown ones', async () => {
    using resolver = new HostResolver({ limit: LONG });
    assert.match(await text(resolver.resolve('localhost')), /127\.0\.0\.1|::1/);
    await assert.rejects(resolver.resolve('no-such-name.invalid'), /failed: E[A-Z_]+$/);
  });

  test('a host without an answer fails at the limit, then at once, until the system answers', async () => {
    const { lookup, asked, answer } = system({ 'dead.test': ['192.0.2.1'] });
    using resolver = new HostResolver({ lookup, limit: 50, slots: 2 });
    const late = /the DNS look-up of dead\.test had no answer within 50 ms/;
    await assert.rejects(resolver.resolve('dead.test'), late);
    await assert.rejects(resolver.resolve('dead.test'), late);
    assert.deepEqual(asked, ['dead.test'], 'one look-up of a host at a time');
    answer('dead.test');
    await waitFor('the answer', () =>
      text(resolver.resolve('dead.test')).then(
        (found) => found === '192.0.2.1',
        () => false,
      ),
    );
    assert.deepEqual(asked, ['dead.test'], 'the late answer is used');
  });

  test('no more look-ups than slots run at a time, and those that wait have the same limit', async () => {
    const { lookup, asked, answer } = system({
      'dead-1.test': [],
      'a.test': ['192.0.2.1'],
      'b.test': ['192.0.2.2'],
    });
    using resolver = new HostResolver({ lookup, limit: 50, slots: 2 });
    const dead = ['dead-1.test', 'dead-2.test'].map((host) =>
      assert.rejects(resolver.resolve(host), /no answer/),
    );
    await assert.rejects(resolver.resolve('a.test'), /a\.test had no answer within 50 ms/);
    await Promise.all(dead);
    assert.deepEqual(asked, ['dead-1.test', 'dead-2.test']);
    answer('dead-1.test');
    await waitFor('the slot', () => asked.includes('a.test'));
    assert.equal(await text(resolver.resolve('b.test')), '192.0.2.2');
  });

  test('the end rejects what waits, and starts no look-up any more', async () => {
    const { lookup, asked, answer } = system();
    using resolver = new HostResolver({ lookup, limit: LONG, slots: 1 });
    const pending = ['dead.test', 'queued.test'].map((host) =>
      assert.rejects(resolver.resolve(host), NotSentError),
    );
    resolver[Symbol.dispose]();
    await Promise.all(pending);
    await assert.rejects(resolver.resolve('other.test'), NotSentError);
    answer('dead.test');
    await setImmediate();
    assert.deepEqual(asked, ['dead.test']);
  });

  test('half of the threads may look up, and two of these are left to others', () => {
    assert.deepEqual([1, 4, 7, 16, 128].map(lookupSlots), [1, 1, 2, 6, 62]);
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

  test('names without an answer delay no others while there are slots', async () => {
    const { lookup, asked } = system({ 'good.test': ['127.0.0.1'] });
    await using good = await receiver();
    using at = poster({ lookup, slots: 3 });
    const dead = Promise.all(['dead-1', 'dead-2'].map((name) => failure(at.post(`http://${name}.test/`))));
    await waitFor('the names to be looked up', () => asked.length === 2);
    for (let i = 0; i < 20; i++) {
      assert.equal((await at.post(`http://good.test:${good.port}/`)).status, 204);
    }
    at[Symbol.dispose]();
    for (const error of await dead) assert.ok(error instanceof NotSentError, String(error));
  });

  test('a name that becomes private is refused: each connection uses addresses that were checked', async () => {
    await using good = await receiver();
    let address = '127.0.0.1';
    const asked: string[] = [];
    using network = new Network({
      limit: LONG,
      connectTime: LONG,
      async lookup(host) {
        asked.push(host);
        return [{ address, family: 4 }];
      },
    });
    using posting = createPoster({ network, allowPrivate: false });
    const post = (name: string) =>
      posting.post({
        url: new URL(`http://${name}:${good.port}/`),
        headers: {},
        body: Buffer.from('1'),
        signal: never,
      });
    for (let i = 0; i < 2; i++) assert.ok((await failure(post('a.test'))) instanceof PrivateAddressError);
    address = '169.254.169.254';
    assert.ok((await failure(post('b.test'))) instanceof PrivateAddressError);
    assert.deepEqual(asked, ['a.test', 'b.test']);
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
    const { lookup, asked } = system();
    await using database = openDatabase('sqlite::memory:');
    const { inbox } = database;
    using at = poster({ lookup });
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
    await waitFor('the name to be looked up', () => asked.length > 0);
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
