import { BlockList, isIP, isIPv4 } from 'node:net';

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
