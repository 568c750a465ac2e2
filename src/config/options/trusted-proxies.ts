import { isIP } from 'node:net';
import { NAMED_RANGES, type Trust, trustAddresses } from '../../core/trusted-addresses.ts';

/** Stands for every address. */
const EVERY = 'true';
/** Stands for whoever connects on a Unix socket. */
const SOCKETS = 'unix';
const RANGES = Object.keys(NAMED_RANGES);

function isProxy(text: string): boolean {
  const [address = '', length, ...more] = text.split('/');
  const version = isIP(address);
  if (version === 0 || address.includes('%')) return [EVERY, SOCKETS, ...RANGES].includes(text);
  if (length === undefined) return true;
  return more.length === 0 && /^[1-9]\d{0,2}$/.test(length) && Number(length) <= (version === 4 ? 32 : 128);
}

/** The addresses of proxies whose X-Forwarded headers are trusted. */
export const trustedProxies = {
  expected: `${EVERY}, or a list of IP addresses, CIDR ranges, ${RANGES.join(', ')}, ${SOCKETS}`,
  pattern: { test: isProxy },
} as const;

/** Who may say which address a client has, as Fastify takes it. */
export type TrustProxy = false | string[] | Trust;

/**
 * The option's value as Fastify takes it; false when empty, as Fastify parses proxy headers for any function. Its own
 * `true` would take the first address of X-Forwarded-For, which a client writes itself where its proxy adds to that.
 */
export function trustProxy(proxies: readonly string[]): TrustProxy {
  if (proxies.includes(EVERY)) return (_address, hop) => hop === 0;
  if (proxies.includes(SOCKETS)) return orSocket(proxies.filter((proxy) => proxy !== SOCKETS));
  return proxies.length > 0 && [...proxies];
}

/** Fastify compares addresses only, and who connects on a Unix socket has none. */
function orSocket(proxies: readonly string[]): TrustProxy {
  const trust = trustAddresses(proxies);
  return (address, hop) => (address === undefined ? hop === 0 : trust(address, hop));
}
