import type { IncomingHttpHeaders } from 'node:http';
import { type Trust, trustAddresses } from '../../core/trusted-addresses.ts';

type Fields = Readonly<IncomingHttpHeaders>;

/** Says who a client is and which host it asked for, by its connection and what trusted proxies forward, as Fastify does. */
export interface Forwarding {
  /** Whether any proxy is trusted. */
  readonly trustsProxies: boolean;
  /** The address of the client; empty where there is none. */
  client(remote: string | undefined, headers: Fields): string;
  /** The host that the client asked for; empty where there is none. */
  host(remote: string | undefined, headers: Fields): string;
}

/** Follows the proxies that Fastify's option trusts. */
export function forwarding(trustProxy: unknown): Forwarding {
  const trust = trustOf(trustProxy);
  if (trust === undefined) {
    return {
      trustsProxies: false,
      client: (remote = '') => remote,
      host: (_remote, { host = '' }) => host,
    };
  }
  return {
    trustsProxies: true,
    client(remote, headers) {
      const forwarded = field(headers, 'x-forwarded-for');
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
    },
    host(remote, headers) {
      const forwarded = field(headers, 'x-forwarded-host');
      if (!forwarded || !trust(remote, 0)) return headers.host ?? '';
      // That of the nearest proxy.
      return forwarded.slice(forwarded.lastIndexOf(',') + 1).trim();
    },
  };
}

/** The fast path takes no field that comes twice. */
function field(headers: Fields, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}

function trustOf(trustProxy: unknown): Trust | undefined {
  if (typeof trustProxy === 'function') return trustProxy as Trust;
  return Array.isArray(trustProxy) ? trustAddresses(trustProxy) : undefined;
}
