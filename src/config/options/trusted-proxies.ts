import { BlockList, isIP, isIPv4 } from 'node:net';

/** Stands for every address. */
const EVERY = 'true';
/** Stands for whoever connects on a Unix socket. */
const SOCKETS = 'unix';
const RANGES: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.1/8', '::1/128'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
};

function isProxy(text: string): boolean {
  const [address = '', length, ...more] = text.split('/');
  const version = isIP(address);
  if (version === 0 || address.includes('%')) return [EVERY, SOCKETS, ...Object.keys(RANGES)].includes(text);
  if (length === undefined) return true;
  return more.length === 0 && /^[1-9]\d{0,2}$/.test(length) && Number(length) <= (version === 4 ? 32 : 128);
}

/** The addresses of proxies whose X-Forwarded headers are trusted. */
export const trustedProxies = {
  expected: `${EVERY}, or a list of IP addresses, CIDR ranges, ${Object.keys(RANGES).join(', ')}, ${SOCKETS}`,
  pattern: { test: isProxy },
} as const;

/** Who may say which address a client has, as Fastify takes it. */
export type TrustProxy = false | string[] | ((address: string | undefined, hop: number) => boolean);

/**
 * The option's value as Fastify takes it; false when empty, as Fastify parses proxy headers for any list. Its own `true`
 * would take the first address of X-Forwarded-For, which a client writes itself where its proxy adds to that.
 */
export function trustProxy(proxies: readonly string[]): TrustProxy {
  if (proxies.includes(EVERY)) return (_address, hop) => hop === 0;
  if (proxies.includes(SOCKETS)) return orSocket(proxies.filter((proxy) => proxy !== SOCKETS));
  return proxies.length > 0 && [...proxies];
}

/** Fastify compares addresses only, and who connects on a Unix socket has none. */
function orSocket(proxies: readonly string[]): TrustProxy {
  const trusted = new BlockList();
  for (const proxy of proxies.flatMap((each) => RANGES[each] ?? [each])) {
    const [address = '', length] = proxy.split('/');
    const family = isIPv4(address) ? 'ipv4' : 'ipv6';
    if (length === undefined) trusted.addAddress(address, family);
    else trusted.addSubnet(address, Number(length), family);
  }
  return (address, hop) => {
    if (address === undefined) return hop === 0;
    const version = isIP(address);
    return version !== 0 && trusted.check(address, version === 4 ? 'ipv4' : 'ipv6');
  };
}
