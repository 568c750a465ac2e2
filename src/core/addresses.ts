import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';

/** Whether to trust X-Forwarded fields from an address `hop` proxies away; undefined on a Unix socket. */
export type Trust = (address: string | undefined, hop: number) => boolean;

export const NAMED_RANGES: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.1/8', '::1/128'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
};

/** Trusts the addresses and ranges of a list; never a Unix socket. */
export function trustAddresses(list: readonly string[]): Trust {
  const trusted = new BlockList();
  for (const each of list.flatMap((item) => NAMED_RANGES[item] ?? [item])) {
    const [address = '', length] = each.split('/');
    const family = isIPv4(address) ? 'ipv4' : 'ipv6';
    if (length === undefined) trusted.addAddress(address, family);
    else trusted.addSubnet(address, Number(length), family);
  }
  return (address = '') => {
    const version = isIP(address);
    return version !== 0 && trusted.check(address, version === 4 ? 'ipv4' : 'ipv6');
  };
}

const trustsLoopback = trustAddresses(['loopback']);

/** Whether an IP address is a loopback address, also one mapped to IPv6. */
export function isLoopback(address: string): boolean {
  return trustsLoopback(address, 0);
}

/** The address of a Unix socket: `unix:` and an absolute path. */
export type UnixAddress = `unix:${string}`;

const PREFIX = 'unix:';
/** The longest socket path that every operating system accepts, in bytes. */
const MAX_PATH_BYTES = 103;

/** The syntax of a Unix address, for messages. */
export const UNIX_ADDRESS = `${PREFIX}/path (of a socket, at most ${MAX_PATH_BYTES} bytes)`;

/** The path in `unix:/run/portico/rest.sock`; undefined for any other value, such as a port. */
export function socketPathOf(address: unknown): string | undefined {
  if (typeof address !== 'string' || !address.startsWith(`${PREFIX}/`)) return undefined;
  const path = address.slice(PREFIX.length);
  return /\p{Cc}/u.test(path) || path.endsWith('/') || Buffer.byteLength(path) > MAX_PATH_BYTES
    ? undefined
    : path;
}

const UNKNOWN = 'unknown';

/**
 * The key for counting attempts of a client. IPv6 addresses share a key per /64 network, because one host can
 * use all of its addresses. Ports, which some proxies forward with the address, are ignored.
 */
export function attemptSource(address: string | undefined): string {
  // The client has already disconnected.
  if (address === undefined) return UNKNOWN;
  if (isIPv4(address)) return address;
  const host = /^\[(.+)\](?::\d+)?$/.exec(address)?.[1] ?? address.replace(/^([\d.]+):\d+$/, '$1');
  // A trusted proxy may forward any text.
  if (isIP(host) === 0) return UNKNOWN;
  if (isIPv4(host)) return host;
  const mapped = /^::ffff:(\d+(?:\.\d+){3})$/i.exec(host)?.[1];
  if (mapped !== undefined) return mapped;
  const [head = '', tail] = host.replace(/%.*$/, '').toLowerCase().split('::');
  const before = groupsOf(head);
  const after = groupsOf(tail ?? '');
  const missing = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length);
  const groups = [...before, ...Array<string>(missing).fill('0'), ...after];
  return `${groups.slice(0, 4).join(':')}::/64`;
}

function groupsOf(text: string): readonly string[] {
  return text === '' ? [] : text.split(':').map((group) => group.replace(/^0+(?=.)/, ''));
}

/**
 * A host with an optional port, as in a Host header. User info, paths and anything else in a URL are
 * excluded.
 */
const AUTHORITY = /^(\[[\da-f:.]{2,45}\]|[\w.-]{1,254})(?::\d{0,5})?$/i;
/** The authority of a request target in absolute form; it ends at the first "/" or "?" (RFC 3986 3.2). */
const ABSOLUTE = /^https?:\/\/([^/?]*)/i;
/** Maximum number of accepted Host headers in the cache: clients choose the port. */
const MAX_KNOWN = 100;

/** Which IP addresses count as names of a door. */
type OwnAddresses = 'loopback' | 'all';

/** The parts of a request that name its host. */
interface AskedRequest {
  /** X-Forwarded-Host if a trusted proxy sends it, otherwise Host, as Fastify provides it. */
  readonly host: string;
  readonly originalUrl: string;
  readonly headers: { readonly host?: string | undefined };
}

/**
 * The host names of a door. Requests for other names may be DNS rebinding: an attacker's name that resolves
 * to this machine lets pages of that name read the door's replies. IP addresses cannot be rebound.
 */
export class OwnHosts {
  readonly #names: ReadonlySet<string | undefined>;
  readonly #addresses: OwnAddresses;
  /** Accepted authorities, verbatim. */
  readonly #known = new Set<string>();
  #last: string | undefined;

  /** `localhost` is always included. Names that are not valid in a URL are ignored. */
  constructor(names: readonly string[], addresses: OwnAddresses) {
    this.#names = new Set([
      'localhost',
      // The colon first, because the first call of `isIPv6` compiles a large pattern.
      ...names.map((name) => hostNameOf(name.includes(':') && isIPv6(name) ? `[${name}]` : name)),
    ]);
    this.#addresses = addresses;
  }

  /** Whether an authority, as in a Host header, names the door; ports are ignored. */
  has(authority: string): boolean {
    if (authority === this.#last) return true;
    if (!this.#known.has(authority)) {
      if (!this.#judge(authority)) return false;
      if (this.#known.size >= MAX_KNOWN) this.#known.clear();
      this.#known.add(authority);
    }
    this.#last = authority;
    return true;
  }

  /**
   * The first authority of a request that does not name the door; undefined if there is none. A forwarded
   * host is checked in addition to the Host header, not instead of it: a page under a rebound name could send
   * X-Forwarded-Host itself, bypassing the proxy. A request without any authority does not come from a
   * browser and is accepted.
   */
  strangerOf({ host: forwarded, originalUrl, headers: { host } }: AskedRequest): string | undefined {
    // The authority of the target takes precedence over Host (RFC 9112 3.2.2).
    const asked = (originalUrl.startsWith('/') ? undefined : ABSOLUTE.exec(originalUrl)?.[1]) ?? host;
    if (asked !== undefined && !this.has(asked)) return asked;
    if (forwarded !== (host ?? '') && !this.has(forwarded)) return forwarded;
    return undefined;
  }

  #judge(authority: string): boolean {
    const name = hostNameOf(authority);
    if (name === undefined) return false;
    if (this.#names.has(name) || isLoopback(name)) return true;
    return this.#addresses === 'all' && isIP(name) !== 0;
  }
}

/**
 * The host of an authority in URL form: lower case, without brackets and without a trailing dot. Undefined if
 * it is not a valid host.
 */
export function hostNameOf(authority: string): string | undefined {
  const host = AUTHORITY.exec(authority)?.[1];
  if (host === undefined || !URL.canParse(`http://${host}`)) return undefined;
  const { hostname } = new URL(`http://${host}`);
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname.replace(/\.$/, '');
}
