import type { FastifyRequest } from 'fastify';

const HOST = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/i;

/** Scheme and host as the client, or a trusted proxy, sent them; our own address when that is no host. */
export function originOf({ protocol, host, socket }: FastifyRequest): string {
  const scheme = protocol === 'https' ? 'https' : 'http';
  if (HOST.test(host)) return `${scheme}://${host}`;
  const { localAddress = 'localhost', localPort = 80 } = socket;
  return `${scheme}://${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}
