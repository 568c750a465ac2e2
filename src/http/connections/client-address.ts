import { type Trust, trustAddresses } from '../../core/trusted-addresses.ts';

/** Gives the address of a client by its connection and X-Forwarded-For, as Fastify does; empty where there is none. */
export type ClientAddress = (remote: string | undefined, forwarded: string | undefined) => string;

/** Who says which address a client has: Fastify's option. */
export function clientAddress(trustProxy: unknown): ClientAddress {
  const trust = trustOf(trustProxy);
  if (trust === undefined) return (remote = '') => remote;
  return (remote, forwarded) => {
    if (forwarded === undefined) return remote ?? '';
    const hops = [
      remote,
      ...forwarded
        .split(',')
        .map((hop) => hop.trim())
        .filter(Boolean)
        .toReversed(),
    ];
    const client = hops.findIndex((address, hop) => !trust(address, hop));
    return hops.at(client) ?? '';
  };
}

function trustOf(trustProxy: unknown): Trust | undefined {
  if (typeof trustProxy === 'function') return trustProxy as Trust;
  return Array.isArray(trustProxy) ? trustAddresses(trustProxy) : undefined;
}
