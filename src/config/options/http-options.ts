import { isIPv6 } from 'node:net';
import { count, list, toggle } from './option.ts';
import { trustedProxies } from './trusted-proxies.ts';

/** The options of all doors' HTTP. */
export const httpOptions = {
  'http.trustProxy': list({
    ...trustedProxies,
    env: 'TRUST_PROXY',
    default: [],
    description:
      'Addresses and CIDR ranges of the proxies in front of the doors (also loopback, linklocal, uniquelocal): only their X-Forwarded-For, -Host and -Proto count, for the limit on failed log-ins, rates, shares of the room for bodies, links and /httpexchanges. true trusts everybody who connects, but no further address in X-Forwarded-For: clients that reach a door without a proxy can claim any address.',
  }),
  'http.hosts': list({
    env: 'HTTP_HOSTS',
    default: [],
    expected: 'a list of host names and IP addresses, without ports',
    pattern: { test: (text) => isIPv6(text) || (/^[\w.-]+$/.test(text) && URL.canParse(`http://${text}`)) },
    description:
      'Names by which clients ask for the doors, beside localhost. GraphQL, REST and management refuse requests for any other where they need no credentials and listen on loopback, or where names are set; so does the console everywhere.',
  }),
  'http.fastPath': toggle({
    env: 'HTTP_FAST_PATH',
    default: true,
    description:
      "Fast path: replies to plain requests without Fastify and Node's HTTP parser, byte for byte the same.",
  }),
  'http.maxConnections': count({
    env: 'HTTP_MAX_CONNECTIONS',
    default: 10_000,
    min: 1,
    description:
      'Maximum connections per door. Beyond it the ones that are idle for longest, for a second at least, are closed for new ones.',
  }),
  'http.maxConnectionsPerAddress': count({
    env: 'HTTP_MAX_CONNECTIONS_PER_ADDRESS',
    default: 2_500,
    min: 1,
    description:
      'Maximum connections per door of one address, or one IPv6 network of 64 bits. Not used where http.trustProxy names proxies, which have the connections of all clients.',
  }),
  'http.maxUnreadBytes': count({
    env: 'HTTP_MAX_UNREAD_BYTES',
    default: 64 * 1024 * 1024,
    description:
      'Maximum size of what clients have not read yet of replies, event streams and WebSockets, over all doors, in bytes. Beyond it the oldest clients that have read nothing for a second are disconnected. Without such, a new reply over 16 KiB is a 503, and a long one waits with its next piece.',
  }),
} as const;
