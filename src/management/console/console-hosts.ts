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
