import type { LookupAddress } from 'node:dns';
import { readFile } from 'node:fs/promises';
import type { ClientRequest } from 'node:http';
import { BlockList, isIP, isIPv4, isIPv6, type LookupFunction } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { AttemptError, NotSentError } from '../dispatch/target.ts';

type Addresses = readonly LookupAddress[];

/** Options for resolving host names. Times are in milliseconds. */
export interface ResolverOptions {
  /** DNS servers. Default: the system's. */
  readonly servers?: readonly string[];
  /** Maximum total time of a look-up. Default: 3,000. */
  readonly limit?: number;
  readonly hostsFile?: string;
  readonly resolvConf?: string;
}

/**
 * Bounds on how long an answer is cached, regardless of its TTL, and how long a failure is; in milliseconds.
 */
const KEPT = { min: 1_000, max: 60_000, failure: 5_000 };
/** How long to wait for the second address family once the first has been answered, in milliseconds. */
const GRACE = 250;
/** Timeout of the first query to a server in milliseconds, and the number of tries. */
const QUESTION = { timeout: 1_000, tries: 3 };
/** The DNS server does not know the name, or there is no server; the system's resolver may still know it. */
const UNKNOWN: ReadonlySet<unknown> = new Set(['ENOTFOUND', 'ENODATA', 'ECONNREFUSED']);

/** Loaded on the first look-up: most services forward nothing. */
const loadDns = () => process.getBuiltinModule('node:dns');

interface Answer {
  readonly addresses: Addresses;
  /** In milliseconds. */
  readonly ttl: number;
}

interface Lookup {
  readonly answer: Promise<Addresses>;
  /** On the monotonic clock; infinite while the look-up is in progress. */
  keptUntil: number;
}

/**
 * Resolves host names without the system's resolver, whose two threads serve the whole process: names whose
 * DNS servers do not answer would block all others. Each host has at most one look-up at a time, with a time
 * limit and a cached answer. The system's hosts file and search list apply as usual.
 */
export class HostResolver implements Disposable {
  readonly #options: ResolverOptions;
  readonly #limit: number;
  readonly #lookups = new Map<string, Lookup>();
  readonly #closing = new AbortController();
  /** The last look-up through the system's resolver, which runs one at a time. */
  #bySystem: Promise<unknown> = Promise.resolve();

  constructor(options: ResolverOptions = {}) {
    this.#options = options;
    this.#limit = options.limit ?? 3_000;
  }

  /**
   * The addresses of a host, at least one. Rejects with AttemptError, or with NotSentError after `dispose`.
   */
  resolve(host: string): Promise<Addresses> {
    const known = this.#lookups.get(host);
    if (known !== undefined && performance.now() < known.keptUntil) return known.answer;
    const answer = this.#limited(host).then(
      ({ addresses, ttl }) => {
        lookup.keptUntil = performance.now() + Math.min(KEPT.max, Math.max(KEPT.min, ttl));
        return addresses;
      },
      (error: unknown) => {
        lookup.keptUntil = performance.now() + KEPT.failure;
        throw error;
      },
    );
    const lookup: Lookup = { answer, keptUntil: Number.POSITIVE_INFINITY };
    this.#lookups.set(host, lookup);
    return answer;
  }

  /** Cancels all look-ups. */
  [Symbol.dispose](): void {
    this.#closing.abort();
  }

  /** Looks a host up within the time limit; cancels open queries at the end. */
  async #limited(host: string): Promise<Answer> {
    const end = new AbortController();
    const { promise: stopped, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new AttemptError(`the DNS look-up of ${host} had no answer within ${this.#limit} ms`)),
      this.#limit,
    );
    const close = () => reject(new NotSentError(host));
    const { signal } = this.#closing;
    signal.addEventListener('abort', close);
    if (signal.aborted) close();
    try {
      return await Promise.race([this.#lookUp(host, end.signal), stopped]);
    } catch (error) {
      if (error instanceof AttemptError) throw error;
      throw new AttemptError(`the DNS look-up of ${host} failed: ${codeOf(error)}`);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', close);
      end.abort();
    }
  }

  async #lookUp(host: string, signal: AbortSignal): Promise<Answer> {
    const family = isIP(host);
    if (family !== 0) return { addresses: [{ address: host, family }], ttl: KEPT.max };
    const local = await inHostsFile(host, this.#options.hostsFile);
    if (local.length > 0) return { addresses: local, ttl: KEPT.failure };
    let failure: unknown;
    for (const name of await fullNames(host, this.#options.resolvConf)) {
      if (signal.aborted) break;
      try {
        return await this.#ask(name, signal);
      } catch (error) {
        failure = error;
        if (!UNKNOWN.has(codeOf(error))) break;
      }
    }
    if (signal.aborted || !UNKNOWN.has(codeOf(failure))) throw failure;
    const bySystem = this.#bySystem.then(() => {
      if (signal.aborted) throw failure;
      return loadDns().promises.lookup(host, { all: true });
    });
    this.#bySystem = bySystem.catch(() => {});
    return { addresses: await bySystem, ttl: KEPT.failure };
  }

  /**
   * Queries the DNS servers for the addresses of a full name. Rejects with the most informative error of the
   * two families.
   */
  async #ask(name: string, signal: AbortSignal): Promise<Answer> {
    const resolver = new (loadDns().promises.Resolver)(QUESTION);
    if (this.#options.servers !== undefined) resolver.setServers(this.#options.servers);
    signal.addEventListener('abort', () => resolver.cancel());
    const four = records(resolver.resolve4(name, { ttl: true }), 4);
    const six = records(resolver.resolve6(name, { ttl: true }), 6);
    const [a, b] = await Promise.allSettled([soonAfter(six, four), soonAfter(four, six)]);
    const answers = [a, b].flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    const addresses = answers.flatMap((answer) => answer.addresses);
    if (addresses.length > 0) return { addresses, ttl: Math.min(...answers.map(({ ttl }) => ttl)) };
    // Prefers the error of a failed server to that of an unknown name.
    const failures = [a, b].flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
    throw failures.find((error) => !UNKNOWN.has(codeOf(error))) ?? failures[0];
  }
}

async function records(
  found: Promise<readonly { readonly address: string; readonly ttl: number }[]>,
  family: 4 | 6,
): Promise<Answer> {
  const all = await found;
  return {
    addresses: all.map(({ address }) => ({ address, family })),
    ttl: Math.min(...all.map(({ ttl }) => ttl)) * 1_000,
  };
}

/** Resolves to `own`, or to no addresses `GRACE` after `other` has resolved. */
function soonAfter(other: Promise<Answer>, own: Promise<Answer>): Promise<Answer> {
  const late = other.then(
    async ({ ttl }) => {
      await delay(GRACE, undefined, { ref: false });
      return { addresses: [], ttl };
    },
    () => own,
  );
  return Promise.race([own, late]);
}

function codeOf(error: unknown): string {
  const { code } = Object(error) as { readonly code?: unknown };
  return typeof code === 'string' ? code : String(error);
}

/** The system's hosts file. */
const HOSTS_FILE =
  process.platform === 'win32'
    ? join(process.env.SystemRoot ?? 'C:\\Windows', 'System32\\drivers\\etc\\hosts')
    : '/etc/hosts';

/** RFC 6761: these names are always loopback names; the hosts file may only choose the addresses. */
const LOCALHOST = /^(?:.+\.)?localhost$/;
const LOOPBACK: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/** The addresses of a name in the hosts file, in order; `localhost` always has some. */
async function inHostsFile(name: string, file = HOSTS_FILE): Promise<readonly LookupAddress[]> {
  const wanted = name.toLowerCase();
  const text = await readFile(file, 'utf8').catch(() => '');
  const found: LookupAddress[] = [];
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    const family = isIP(address);
    if (family !== 0 && names.some((each) => each.toLowerCase() === wanted)) found.push({ address, family });
  }
  return found.length === 0 && LOCALHOST.test(wanted) ? LOOPBACK : found;
}

/** The configuration of the system's resolver. */
const RESOLV_CONF = '/etc/resolv.conf';

/**
 * The full names to try for a name, in the order of resolv.conf: a cluster resolves `billing.shop` as
 * `billing.shop.svc.cluster.local`.
 */
async function fullNames(name: string, file = RESOLV_CONF): Promise<readonly string[]> {
  if (name.endsWith('.')) return [name.slice(0, -1)];
  const { search, ndots } = readSearch(await readFile(file, 'utf8').catch(() => ''));
  const longer = search.map((domain) => `${name}.${domain}`);
  const isFull = name.split('.').length - 1 >= ndots;
  return isFull ? [name, ...longer] : [...longer, name];
}

/** The search list of resolv.conf, whose last line counts, and `ndots` (resolv.conf(5)). */
function readSearch(text: string): { readonly search: readonly string[]; readonly ndots: number } {
  let search: readonly string[] = [];
  let ndots = 1;
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line.trim().split(/\s+/);
    if (keyword === 'search') search = values;
    else if (keyword === 'domain') search = values.slice(0, 1);
    else if (keyword === 'options') {
      const given = values.find((value) => /^ndots:\d+$/.test(value));
      if (given !== undefined) ndots = Number(given.slice('ndots:'.length));
    }
  }
  return {
    search: search.map((domain) => domain.replace(/\.$/, '')).filter((domain) => domain !== ''),
    ndots,
  };
}

/** A forward address is in a private network and `allowPrivate` is not set: protects against SSRF. */
export class PrivateAddressError extends AttemptError {
  constructor(host: string) {
    super(
      `${host} is a private address; set allowPrivate for this forward address if that is intended`,
      'never',
    );
  }
}

/** Whether a host is a private IP address literal; names are checked when they are resolved. */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '');
  return isIP(host) !== 0 && isPrivateAddress(host);
}

/**
 * A look-up function for connections that fails if any address of the host is private, unless `allowPrivate`
 * is set. The connection uses the checked addresses, which prevents DNS rebinding.
 */
export function guardedLookup(resolver: HostResolver, allowPrivate: boolean): LookupFunction {
  return (hostname, options, callback) => {
    resolver.resolve(hostname).then(
      (found) => {
        if (!allowPrivate && found.some(({ address }) => isPrivateAddress(address))) {
          return callback(new PrivateAddressError(hostname), '');
        }
        const wanted = found.filter(({ family }) => !options.family || options.family === family);
        const [first] = wanted;
        if (first === undefined) callback(new AttemptError(`${hostname} has no address of this family`), '');
        else if (options.all) callback(null, wanted);
        else callback(null, first.address, first.family);
      },
      (error: Error) => callback(error, ''),
    );
  };
}

/** Options for opening connections. Times are in milliseconds. */
export interface NetworkOptions extends ResolverOptions {
  /** Maximum time to open a connection, including the look-up and TLS. Default: 5,000. */
  readonly connectTime?: number;
  /** How long to avoid a host that did not accept a connection in that time. Default: 5,000. */
  readonly silence?: number;
}

/**
 * State shared by all forward addresses: look-ups, and the hosts that do not accept connections. Attempts
 * that connect to one host at the same time share one timeout; while the host is avoided, other attempts fail
 * at once.
 */
export class Network implements Disposable {
  readonly resolver: HostResolver;
  readonly #connectTime: number;
  readonly #silence: number;
  /** Requests waiting for a connection, by host and port. */
  readonly #opening = new Map<string, Set<ClientRequest>>();
  /** Until when each host is avoided, on the monotonic clock. */
  readonly #silentUntil = new Map<string, number>();
  #closed = false;

  constructor({ connectTime = 5_000, silence = 5_000, ...options }: NetworkOptions = {}) {
    this.resolver = new HostResolver(options);
    this.#connectTime = connectTime;
    this.#silence = silence;
  }

  /** Throws AttemptError while a host is avoided, and NotSentError after `dispose`. */
  allow(host: string): void {
    if (this.#closed) throw new NotSentError(host);
    const left = (this.#silentUntil.get(host) ?? 0) - performance.now();
    if (left > 0) throw new AttemptError(`${host} did not accept a connection a moment ago`, Math.ceil(left));
  }

  /** Limits the time until a request's connection is open, which its socket signals by `event`. */
  watch(host: string, request: ClientRequest, event: 'connect' | 'secureConnect'): void {
    request.once('socket', (socket) => {
      if (!socket.connecting) return;
      if (this.#closed) return void request.destroy(new NotSentError(host));
      const opening = this.#opening.get(host) ?? new Set();
      this.#opening.set(host, opening.add(request));
      const timer = setTimeout(() => this.#leaveAlone(host), this.#connectTime);
      const opened = () => {
        clearTimeout(timer);
        opening.delete(request);
      };
      socket.once(event, () => {
        opened();
        this.#silentUntil.delete(host);
      });
      socket.once('close', opened);
    });
  }

  /** Cancels all look-ups and all requests without a connection, of which nothing was sent. */
  [Symbol.dispose](): void {
    this.#closed = true;
    this.resolver[Symbol.dispose]();
    for (const [host, requests] of this.#opening) {
      for (const request of requests) request.destroy(new NotSentError(host));
    }
  }

  #leaveAlone(host: string): void {
    this.#silentUntil.set(host, performance.now() + this.#silence);
    const error = new AttemptError(`${host} did not accept a connection within ${this.#connectTime} ms`);
    for (const request of this.#opening.get(host) ?? []) request.destroy(error);
  }
}

/** Networks without public servers (IANA special-purpose address registries). */
const NETWORKS: readonly (readonly [network: string, prefix: number, family: 'ipv4' | 'ipv6'])[] = [
  ['0.0.0.0', 8, 'ipv4'],
  ['10.0.0.0', 8, 'ipv4'],
  ['100.64.0.0', 10, 'ipv4'],
  ['127.0.0.0', 8, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['172.16.0.0', 12, 'ipv4'],
  ['192.0.0.0', 24, 'ipv4'],
  ['192.0.2.0', 24, 'ipv4'],
  ['192.88.99.0', 24, 'ipv4'],
  ['192.168.0.0', 16, 'ipv4'],
  ['198.18.0.0', 15, 'ipv4'],
  ['198.51.100.0', 24, 'ipv4'],
  ['203.0.113.0', 24, 'ipv4'],
  ['224.0.0.0', 3, 'ipv4'],
  // Unspecified, loopback and IPv4-compatible addresses; further below, ranges that embed an IPv4 address for
  // a gateway.
  ['::', 96, 'ipv6'],
  ['::ffff:0:0:0', 96, 'ipv6'],
  ['64:ff9b::', 96, 'ipv6'],
  ['64:ff9b:1::', 48, 'ipv6'],
  ['2001::', 23, 'ipv6'],
  ['2002::', 16, 'ipv6'],
  ['2001:db8::', 32, 'ipv6'],
  ['3fff::', 20, 'ipv6'],
  ['5f00::', 16, 'ipv6'],
  ['100::', 64, 'ipv6'],
  ['fc00::', 7, 'ipv6'],
  ['fe80::', 9, 'ipv6'],
  ['ff00::', 8, 'ipv6'],
];

const list = new BlockList();
for (const [network, prefix, family] of NETWORKS) list.addSubnet(network, prefix, family);

/**
 * Whether an address is outside the public Internet, such as loopback or private; true for any text but an IP
 * address.
 */
export function isPrivateAddress(address: string): boolean {
  const plain = address.replace(/%.*$/, '');
  if (isIPv4(plain)) return list.check(plain, 'ipv4');
  // BlockList checks IPv4-mapped IPv6 addresses against the IPv4 networks.
  return !isIPv6(plain) || list.check(plain, 'ipv6');
}
