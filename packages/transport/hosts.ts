import type { IncomingHttpHeaders } from 'node:http';
import { isIP, isIPv6 } from 'node:net';
import { isLoopback, type Trust, trustAddresses } from '../../src/core/addresses.ts';
import { HttpProblem } from './problem.ts';

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

/** A host and perhaps a port, as a Host header has them. Everything else that a URL may hold is no part of it. */
const AUTHORITY = /^(\[[\da-f:.]{2,45}\]|[\w.-]{1,254})(?::\d{0,5})?$/i;
/** The authority of a request target in absolute form. It ends at the first "/" or "?" (RFC 3986 3.2). */
const ABSOLUTE = /^https?:\/\/([^/?]*)/i;
/** Accepted Host headers that are remembered: clients choose the port. */
const MAX_KNOWN = 100;

/** Which IP addresses are names of a door. */
type OwnAddresses = 'loopback' | 'all';

/** A request, as far as it says which host it is for. */
interface AskedRequest {
  /** With the trusted X-Forwarded-Host in the place of Host, as Fastify has it. */
  readonly host: string;
  readonly originalUrl: string;
  readonly headers: { readonly host?: string | undefined };
}

/**
 * The host names of a door. Any other name may be somebody else's that was made to resolve to this machine (DNS
 * rebinding): to a browser the door's replies then belong to the pages of that name. An address cannot be another's.
 */
export class OwnHosts {
  readonly #names: ReadonlySet<string | undefined>;
  readonly #addresses: OwnAddresses;
  /** Accepted authorities, as they came. */
  readonly #known = new Set<string>();
  #last: string | undefined;

  /** `localhost` is always among them. A name that no URL can have is none. */
  constructor(names: readonly string[], addresses: OwnAddresses) {
    this.#names = new Set([
      'localhost',
      ...names.map((name) => hostNameOf(isIPv6(name) ? `[${name}]` : name)),
    ]);
    this.#addresses = addresses;
  }

  /** Whether an authority, as a Host header has it, names the door; ports do not matter. */
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
   * The first authority of a request that does not name the door; undefined for none. What a trusted proxy forwards is
   * judged beside the Host header, not in its place: a page of another name can send X-Forwarded-Host itself, past the
   * proxy. A request without any is no browser's.
   */
  strangerOf({ host: forwarded, originalUrl, headers: { host } }: AskedRequest): string | undefined {
    // The authority of the target counts instead of Host (RFC 9112 3.2.2).
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

/** The refusal of a request for a host that does not name the door. */
export function unknownHost(stranger: string): HttpProblem {
  const name = hostNameOf(stranger);
  const message =
    name === undefined
      ? 'The request names no host that a door can have'
      : `Unknown host ${name}; add it to HTTP_HOSTS to take requests for it`;
  return new HttpProblem(403, 'UNKNOWN_HOST', message);
}

/**
 * The host of an authority as URLs write it, in lower case, without brackets and the final dot of a full name; undefined
 * for what is no host.
 */
export function hostNameOf(authority: string): string | undefined {
  const host = AUTHORITY.exec(authority)?.[1];
  if (host === undefined || !URL.canParse(`http://${host}`)) return undefined;
  const { hostname } = new URL(`http://${host}`);
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname.replace(/\.$/, '');
}
