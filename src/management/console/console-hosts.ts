import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';

/**
 * Whether a request names the door by one of its own names. A name of somebody else may lead here (DNS rebinding), and
 * then its pages are of the same origin for a browser; an address or `localhost` cannot be another's.
 */
export function isOwnHost({ hostname }: Pick<FastifyRequest, 'hostname'>, names: readonly string[]): boolean {
  const host = hostname.toLowerCase().replace(/^\[(.*)\]$/, '$1');
  return isIP(host) !== 0 || host === 'localhost' || names.some((name) => name.toLowerCase() === host);
}

const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|::1|::ffff:127(?:\.\d{1,3}){3})$/i;
const FORWARDED = ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via'] as const;

/**
 * Whether the client runs on this machine. One that a proxy on it speaks for need not, unless the proxy is trusted.
 * `localOnly` says that nobody else can connect: who comes without an address is local then.
 */
export function isLocalClient(
  { ip, ips, headers }: Pick<FastifyRequest, 'ip' | 'ips' | 'headers'>,
  localOnly = false,
): boolean {
  const isUnforwarded = FORWARDED.every((name) => headers[name] === undefined);
  // A connection that is gone has no address either.
  if (!ip) return localOnly && isUnforwarded;
  return LOOPBACK.test(ip) && (ips !== undefined || isUnforwarded);
}
