import { isIP } from 'node:net';

/** Stands for every address. */
const EVERY = 'true';
const RANGES = ['loopback', 'linklocal', 'uniquelocal'] as const;

function isProxy(text: string): boolean {
  const [address = '', length, ...more] = text.split('/');
  const version = isIP(address);
  if (version === 0 || address.includes('%')) return [EVERY, ...RANGES].includes(text);
  if (length === undefined) return true;
  return more.length === 0 && /^[1-9]\d{0,2}$/.test(length) && Number(length) <= (version === 4 ? 32 : 128);
}

/** The addresses of proxies whose X-Forwarded headers are trusted. */
export const trustedProxies = {
  expected: `${EVERY}, or a list of IP addresses, CIDR ranges, ${RANGES.join(', ')}`,
  pattern: { test: isProxy },
} as const;

/** Who may say which address a client has, as Fastify takes it. */
export type TrustProxy = false | string[] | ((address: string, hop: number) => boolean);

/**
 * The option's value as Fastify takes it; false when empty, as Fastify parses proxy headers for any list. Its own `true`
 * would take the first address of X-Forwarded-For, which a client writes itself where its proxy adds to that.
 */
export function trustProxy(proxies: readonly string[]): TrustProxy {
  if (proxies.includes(EVERY)) return (_address, hop) => hop === 0;
  return proxies.length > 0 && [...proxies];
}
