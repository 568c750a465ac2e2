import { BlockList, isIP, isIPv4 } from 'node:net';
import type { TrustedHop } from '../../http/connections/client-address.ts';

/** Stands for every address. */
const EVERY = 'true';
const RANGES = {
  loopback: ['127.0.0.0/8', '::1/128'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
} as const;

function isRangeName(text: string): text is keyof typeof RANGES {
  return Object.hasOwn(RANGES, text);
}

function isProxy(text: string): boolean {
  const [address = '', length, ...more] = text.split('/');
  const version = isIP(address);
  if (version === 0 || address.includes('%')) return text === EVERY || isRangeName(text);
  if (length === undefined) return true;
  return more.length === 0 && /^[1-9]\d{0,2}$/.test(length) && Number(length) <= (version === 4 ? 32 : 128);
}

/** The addresses of proxies whose X-Forwarded headers are trusted. */
export const trustedProxies = {
  expected: `${EVERY}, or a list of IP addresses, CIDR ranges, ${Object.keys(RANGES).join(', ')}`,
  pattern: { test: isProxy },
} as const;

/** Who may say which address a client has; false: nobody. */
export type TrustProxy = false | TrustedHop;

/**
 * The option's value as Fastify takes it; false when empty, as Fastify parses proxy headers for any function. Its own
 * `true` would take the first address of X-Forwarded-For, which a client writes itself where its proxy adds to that.
 */
export function trustProxy(proxies: readonly string[]): TrustProxy {
  if (proxies.includes(EVERY)) return (_address, hop) => hop === 0;
  if (proxies.length === 0) return false;
  const trusted = new BlockList();
  for (const proxy of proxies) {
    for (const range of isRangeName(proxy) ? RANGES[proxy] : [proxy]) {
      const [address = '', length] = range.split('/');
      const family = isIPv4(address) ? 'ipv4' : 'ipv6';
      trusted.addSubnet(address, Number(length ?? (family === 'ipv4' ? 32 : 128)), family);
    }
  }
  return (address) => {
    const version = isIP(address);
    return version !== 0 && trusted.check(address, version === 4 ? 'ipv4' : 'ipv6');
  };
}
