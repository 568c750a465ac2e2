import type { FastifyRequest } from 'fastify';
import { forwardedOrigin } from './forwarded.ts';

const HOST = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/i;

/** Gives the start of absolute links: scheme, host and, behind a proxy, the prefix that it took away. */
export type OriginOf = (request: FastifyRequest) => string;

/**
 * How the client reaches us, by its Host header; our own address when that is missing or no host at all.
 * What a proxy says of the original request counts only when `trustForwarded`: anybody can send it.
 */
export function originReader(trustForwarded: boolean): OriginOf {
  if (!trustForwarded) return directOrigin;
  return (request) => forwardedOrigin(request.headers, directOrigin(request));
}

function directOrigin({ protocol, host, socket }: FastifyRequest): string {
  if (HOST.test(host)) return `${protocol}://${host}`;
  const { localAddress = 'localhost', localPort = 80 } = socket;
  return `${protocol}://${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}
