import type { IncomingHttpHeaders } from 'node:http';
import { isIP, isIPv6 } from 'node:net';
import { isLoopback, type Trust, trustAddresses } from '../../src/core/addresses.ts';
import { HttpProblem } from './problem.ts';

type Fields = Readonly<IncomingHttpHeaders>;

/**
 * Determines the client and the requested host from the connection and trusted proxies' headers, as Fastify
 * does.
 */
export interface Forwarding {
  /** Whether any proxy is trusted. */
  readonly trustsProxies: boolean;
  /** The client's address; empty if there is none. */
  client(remote: string | undefined, headers: Fields): string;
  /** The requested host; empty if there is none. */
  host(remote: string | undefined, headers: Fields): string;
  /** The scheme with which the client sent the request; `own` is that of the connection. */
  scheme(remote: string | undefined, headers: Fields, own: 'http' | 'https'): string;
}

/** Creates a Forwarding for Fastify's `trustProxy` option. */
export function forwarding(trustProxy: unknown): Forwarding {
  const trust = trustOf(trustProxy);
  if (trust === undefined) {
    return {
      trustsProxies: false,
      client: (remote = '') => remote,
      host: (_remote, { host = '' }) => host,
      scheme: (_remote, _headers, own) => own,
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
      return forwarded && trust(remote, 0) ? lastOf(forwarded) : (headers.host ?? '');
    },
    scheme(remote, headers, own) {
      const forwarded = field(headers, 'x-forwarded-proto');
      return forwarded && trust(remote, 0) ? lastOf(forwarded) : own;
    },
  };
}

/** The value that the nearest proxy has appended. */
function lastOf(list: string): string {
  return list.slice(list.lastIndexOf(',') + 1).trim();
}

/** A header's value; undefined if it is repeated, which the fast path never takes. */
function field(headers: Fields, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}

function trustOf(trustProxy: unknown): Trust | undefined {
  if (typeof trustProxy === 'function') return trustProxy as Trust;
  return Array.isArray(trustProxy) ? trustAddresses(trustProxy) : undefined;
}

/**
 * A host with an optional port, as in a Host header. User info, paths and anything else in a URL are
 * excluded.
 */
const AUTHORITY = /^(\[[\da-f:.]{2,45}\]|[\w.-]{1,254})(?::\d{0,5})?$/i;
/** The authority of a request target in absolute form; it ends at the first "/" or "?" (RFC 3986 3.2). */
const ABSOLUTE = /^https?:\/\/([^/?]*)/i;
/** Maximum number of accepted Host headers in the cache: clients choose the port. */
const MAX_KNOWN = 100;

/** Which IP addresses count as names of a door. */
type OwnAddresses = 'loopback' | 'all';

/** The parts of a request that name its host. */
interface AskedRequest {
  /** X-Forwarded-Host if a trusted proxy sends it, otherwise Host, as Fastify provides it. */
  readonly host: string;
  readonly originalUrl: string;
  readonly headers: { readonly host?: string | undefined };
}

/**
 * The host names of a door. Requests for other names may be DNS rebinding: an attacker's name that resolves
 * to this machine lets pages of that name read the door's replies. IP addresses cannot be rebound.
 */
export class OwnHosts {
  readonly #names: ReadonlySet<string | undefined>;
  readonly #addresses: OwnAddresses;
  /** Accepted authorities, verbatim. */
  readonly #known = new Set<string>();
  #last: string | undefined;

  /** `localhost` is always included. Names that are not valid in a URL are ignored. */
  constructor(names: readonly string[], addresses: OwnAddresses) {
    this.#names = new Set([
      'localhost',
      ...names.map((name) => hostNameOf(isIPv6(name) ? `[${name}]` : name)),
    ]);
    this.#addresses = addresses;
  }

  /** Whether an authority, as in a Host header, names the door; ports are ignored. */
  has(authority: string): boolean {
    if (authority === this.#last) return true;
    if (!this.#known.has(authority)) {
      if (!this.#judge(authority)) return false;
      if (this.#known.size >= MAX_KNOWN) this.#known.clear();
      this.#known.add(authority);
    }
    this.#last = authority;
    return true;
  }

  /**
   * The first authority of a request that does not name the door; undefined if there is none. A forwarded
   * host is checked in addition to the Host header, not instead of it: a page under a rebound name could send
   * X-Forwarded-Host itself, bypassing the proxy. A request without any authority does not come from a
   * browser and is accepted.
   */
  strangerOf({ host: forwarded, originalUrl, headers: { host } }: AskedRequest): string | undefined {
    // The authority of the target takes precedence over Host (RFC 9112 3.2.2).
    const asked = (originalUrl.startsWith('/') ? undefined : ABSOLUTE.exec(originalUrl)?.[1]) ?? host;
    if (asked !== undefined && !this.has(asked)) return asked;
    if (forwarded !== (host ?? '') && !this.has(forwarded)) return forwarded;
    return undefined;
  }

  #judge(authority: string): boolean {
    const name = hostNameOf(authority);
    if (name === undefined) return false;
    if (this.#names.has(name) || isLoopback(name)) return true;
    return this.#addresses === 'all' && isIP(name) !== 0;
  }
}

/** The refusal of a request for an unknown host. */
export function unknownHost(stranger: string): HttpProblem {
  const name = hostNameOf(stranger);
  const message =
    name === undefined
      ? 'The request names an invalid host'
      : `Unknown host ${name}; add it to HTTP_HOSTS to take requests for it`;
  return new HttpProblem(403, 'UNKNOWN_HOST', message);
}

/**
 * The host of an authority in URL form: lower case, without brackets and without a trailing dot. Undefined if
 * it is not a valid host.
 */
export function hostNameOf(authority: string): string | undefined {
  const host = AUTHORITY.exec(authority)?.[1];
  if (host === undefined || !URL.canParse(`http://${host}`)) return undefined;
  const { hostname } = new URL(`http://${host}`);
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname.replace(/\.$/, '');
}
