import type { LookupAddress } from 'node:dns';
import { BlockList, isIP, isIPv4, isIPv6, type LookupFunction, type Socket } from 'node:net';
import { AttemptError, UncountedError } from '../dispatch/target.ts';

type Addresses = readonly LookupAddress[];

/** Options for resolving host names. Times are in milliseconds. */
interface ResolverOptions {
  /** Looks up all addresses of a host. Default: `dns.lookup`, the system's resolver. */
  readonly lookup?: (host: string) => Promise<Addresses>;
  /** Maximum time to wait for a look-up. Default: 3,000. */
  readonly limit?: number;
  /** Maximum number of look-ups at a time. Default: `lookupSlots` of this process. */
  readonly slots?: number;
}

/** How long an answer or a failure is cached, in milliseconds; the system does not tell the TTL. */
const KEPT = 5_000;
/** Number of hosts in the cache from which on expired ones are removed. */
const MANY_HOSTS = 1_000;
/** Look-ups that remain for the rest of the process, such as connections to the database. */
const RESERVED = 2;

/**
 * The number of look-ups that forwards may run at a time. Each blocks a thread of libuv's pool, which lets
 * look-ups use half of its threads, so that files are never blocked. `bin/portico.js` enlarges the pool.
 */
export function lookupSlots(threads = Number(process.env.UV_THREADPOOL_SIZE) || 4): number {
  return Math.max(1, Math.floor((threads + 1) / 2) - RESERVED);
}

/** Loaded on the first look-up: most services forward nothing. */
const lookupAll = (host: string): Promise<Addresses> =>
  process.getBuiltinModule('node:dns').promises.lookup(host, { all: true });

interface Lookup {
  /** The addresses, or the failure so far: a look-up goes on after its time limit. */
  answer: Promise<Addresses>;
  /** On the monotonic clock; infinite while the look-up is in progress. */
  keptUntil: number;
}

/**
 * Resolves host names with the system's resolver, a bounded number at a time. Each host has at most one
 * look-up at a time, a time limit and a cached answer. A look-up cannot be cancelled: after its limit, all
 * attempts to the host fail at once until the system answers.
 */
export class HostResolver implements Disposable {
  readonly #lookup: (host: string) => Promise<Addresses>;
  readonly #limit: number;
  readonly #lookups = new Map<string, Lookup>();
  /** Called at the end, to reject the answers that are waited for. */
  readonly #waiting = new Set<() => void>();
  /** Starts the look-ups that wait for a slot, oldest first. */
  readonly #queue: (() => void)[] = [];
  #slots: number;
  #closed = false;

  constructor({ lookup = lookupAll, limit = 3_000, slots = lookupSlots() }: ResolverOptions = {}) {
    this.#lookup = lookup;
    this.#limit = limit;
    this.#slots = slots;
  }

  /** The addresses of a host, at least one. Rejects with AttemptError, or NotSentError after `dispose`. */
  resolve(host: string): Promise<Addresses> {
    if (this.#closed) return Promise.reject(new NotSentError(host));
    const known = this.#lookups.get(host);
    if (known !== undefined && performance.now() < known.keptUntil) return known.answer;
    if (this.#lookups.size >= MANY_HOSTS) this.#removeExpired();
    const found = this.#system(host);
    const lookup: Lookup = { answer: this.#limited(host, found), keptUntil: Number.POSITIVE_INFINITY };
    this.#lookups.set(host, lookup);
    const keep = () => {
      lookup.answer = found;
      lookup.keptUntil = performance.now() + KEPT;
    };
    found.then(keep, keep);
    return lookup.answer;
  }

  /** Rejects all that is waited for. The system may still be looking up some hosts. */
  [Symbol.dispose](): void {
    this.#closed = true;
    this.#queue.length = 0;
    for (const reject of this.#waiting) reject();
  }

  /** Looks a host up as soon as there is a slot. */
  async #system(host: string): Promise<Addresses> {
    if (this.#slots > 0) this.#slots--;
    else await new Promise<void>((resolve) => this.#queue.push(resolve));
    try {
      return await this.#lookup(host);
    } catch (error) {
      const { code = error } = Object(error) as { readonly code?: unknown };
      throw new AttemptError(`the DNS look-up of ${host} failed: ${code}`);
    } finally {
      const next = this.#queue.shift();
      if (next === undefined) this.#slots++;
      else next();
    }
  }

  /** `found`, or its failure at the time limit or at the end. */
  async #limited(host: string, found: Promise<Addresses>): Promise<Addresses> {
    const { promise: ended, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new AttemptError(`the DNS look-up of ${host} had no answer within ${this.#limit} ms`)),
      this.#limit,
    );
    const close = () => reject(new NotSentError(host));
    this.#waiting.add(close);
    try {
      return await Promise.race([found, ended]);
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(close);
    }
  }

  #removeExpired(): void {
    const now = performance.now();
    for (const [host, { keptUntil }] of this.#lookups) if (keptUntil <= now) this.#lookups.delete(host);
  }
}

/** Thrown by a target that has sent nothing because the process stops. */
export class NotSentError extends UncountedError {
  constructor(host: string) {
    super(`nothing was sent to ${host}, because the process stops`);
  }
}

/** A forward address is in a private network and `allowPrivate` is not set: protects against SSRF. */
export class PrivateAddressError extends AttemptError {
  constructor(host: string) {
    super(`${host} is a private address; set allowPrivate if that is intended`, 'never');
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
interface NetworkOptions extends ResolverOptions {
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
  /** Connections that are being opened, by host and port. */
  readonly #opening = new Map<string, Set<Socket>>();
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

  /** Limits the time until a connection that is being opened is open, which it signals by `event`. */
  watch(host: string, socket: Socket, event: 'connect' | 'secureConnect'): void {
    const opening = this.#opening.get(host) ?? new Set();
    this.#opening.set(host, opening.add(socket));
    const timer = setTimeout(() => this.#leaveAlone(host), this.#connectTime);
    const opened = () => {
      clearTimeout(timer);
      opening.delete(socket);
      if (opening.size === 0) this.#opening.delete(host);
    };
    socket.once(event, () => {
      opened();
      this.#silentUntil.delete(host);
    });
    socket.once('close', opened);
  }

  /** Ends all waiting for look-ups, and all connections that are not open, on which nothing was sent. */
  [Symbol.dispose](): void {
    this.#closed = true;
    this.resolver[Symbol.dispose]();
    for (const [host, sockets] of this.#opening) {
      for (const socket of sockets) socket.destroy(new NotSentError(host));
    }
  }

  #leaveAlone(host: string): void {
    const now = performance.now();
    if (this.#silentUntil.size >= MANY_HOSTS)
      for (const [each, until] of this.#silentUntil) if (until <= now) this.#silentUntil.delete(each);
    this.#silentUntil.set(host, now + this.#silence);
    const error = new AttemptError(`${host} did not accept a connection within ${this.#connectTime} ms`);
    for (const socket of this.#opening.get(host) ?? []) socket.destroy(error);
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

/** Whether an address is not on the public Internet; true for any text but an IP address. */
export function isPrivateAddress(address: string): boolean {
  const plain = address.replace(/%.*$/, '');
  if (isIPv4(plain)) return list.check(plain, 'ipv4');
  // BlockList checks IPv4-mapped IPv6 addresses against the IPv4 networks.
  return !isIPv6(plain) || list.check(plain, 'ipv6');
}
