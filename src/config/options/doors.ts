import { isIP, isIPv6 } from 'node:net';
import { NAMED_RANGES, type Trust, trustAddresses } from '../../core/addresses.ts';
import { SEARCH_LEVELS } from '../../relations/user.ts';
import { corsOptions } from './access.ts';
import { choice, count, list, path, port, text, toggle } from './option.ts';

/** Stands for every address. */
const EVERY = 'true';
/** Stands for all clients of a Unix socket. */
const SOCKETS = 'unix';
const RANGES = Object.keys(NAMED_RANGES);

function isProxy(text: string): boolean {
  const [address = '', length, ...more] = text.split('/');
  const version = isIP(address);
  if (version === 0 || address.includes('%')) return [EVERY, SOCKETS, ...RANGES].includes(text);
  if (length === undefined) return true;
  return more.length === 0 && /^[1-9]\d{0,2}$/.test(length) && Number(length) <= (version === 4 ? 32 : 128);
}

/** The addresses of proxies whose X-Forwarded headers are trusted. */
const trustedProxies = {
  expected: `${EVERY}, or a list of IP addresses, CIDR ranges, ${RANGES.join(', ')}, ${SOCKETS}`,
  pattern: { test: isProxy },
} as const;

/** Which proxies may state the address of a client, in Fastify's format. */
type TrustProxy = false | string[] | Trust;

/**
 * The option's value in Fastify's format; false if it is empty, because Fastify parses proxy headers for any
 * function. Fastify's own `true` would take the first address of X-Forwarded-For, which the client can write
 * itself if its proxy only appends to the header.
 */
export function trustProxy(proxies: readonly string[]): TrustProxy {
  if (proxies.includes(EVERY)) return (_address, hop) => hop === 0;
  if (proxies.includes(SOCKETS)) return orSocket(proxies.filter((proxy) => proxy !== SOCKETS));
  return proxies.length > 0 && [...proxies];
}

/** Fastify compares only addresses, but clients of a Unix socket have none. */
function orSocket(proxies: readonly string[]): TrustProxy {
  const trust = trustAddresses(proxies);
  return (address, hop) => (address === undefined ? hop === 0 : trust(address, hop));
}

const filePath = {
  placeholder: 'file',
  expected: 'the path of a file',
  pattern: /^\P{Cc}*[^\p{Cc}\s]\P{Cc}*$/u,
} as const;

/** The options of TLS, for all doors on ports. */
export const tlsOptions = {
  'tls.cert': text({
    ...filePath,
    env: 'TLS_CERT',
    unset: 'plain HTTP',
    description:
      'File with the certificate of all doors and its intermediates, as PEM; requires tls.key. The doors then speak only TLS 1.2 and 1.3. Portico reloads changed files without a restart.',
  }),
  'tls.key': text({
    ...filePath,
    env: 'TLS_KEY',
    unset: 'plain HTTP',
    description: 'File with the private key of that certificate, as PEM.',
  }),
  'management.clientCa': text({
    ...filePath,
    env: 'MANAGEMENT_CLIENT_CA',
    unset: 'no client certificates',
    description:
      'File with certificate authorities, as PEM. A client of the management door must have a certificate of one of them; requires tls.cert.',
  }),
  'webhook.clientCa': text({
    ...filePath,
    env: 'WEBHOOK_CLIENT_CA',
    unset: 'no client certificates',
    description:
      'File with certificate authorities, as PEM. A client of the webhook door must have a certificate of one of them; requires tls.cert.',
  }),
} as const;

/** The options of the GraphQL door. */
export const graphqlOptions = {
  'graphql.port': port({
    env: 'GRAPHQL_PORT',
    default: 4000,
    description: 'Port of the GraphQL door; 0 picks a free one. unix:<path> for a Unix socket.',
  }),
  'graphql.path': path({
    env: 'GRAPHQL_PATH',
    default: '/graphql',
    root: false,
    description: 'Path of the GraphQL endpoint.',
  }),
  'graphql.users': choice({
    env: 'GRAPHQL_USERS',
    default: 'memory',
    choices: ['memory', 'database'],
    description:
      'Users that GraphQL serves: its own in memory, or those of the database, like REST (memory, database).',
  }),
  'graphql.introspection': toggle({
    env: 'GRAPHQL_INTROSPECTION',
    default: true,
    description: 'Whether clients may introspect the schema; GraphiQL needs it.',
  }),
  'graphql.suggestions': toggle({
    env: 'GRAPHQL_SUGGESTIONS',
    default: true,
    description: 'Whether errors suggest names that the client may have meant.',
  }),
  'graphql.persistedQueries': toggle({
    env: 'GRAPHQL_PERSISTED_QUERIES',
    default: true,
    description:
      "Whether clients may register documents by their hash (Apollo's automatic persisted queries).",
  }),
  'graphql.documents': text({
    env: 'GRAPHQL_DOCUMENTS',
    unset: 'none',
    placeholder: 'path',
    description:
      "Trusted documents, which clients request by id: a JSON file (documents by id, Relay's persisted queries, Apollo's manifest) or a folder of <id>.graphql files.",
  }),
  'graphql.onlyDocuments': toggle({
    env: 'GRAPHQL_ONLY_DOCUMENTS',
    default: false,
    description: 'Whether to refuse all documents except the trusted ones.',
  }),
  'graphql.maxBatch': count({
    env: 'GRAPHQL_MAX_BATCH',
    default: 0,
    description: 'Maximum operations in a batch, a JSON array of requests; 0 refuses batches.',
  }),
  'limits.graphql.maxTokens': count({
    default: 1_000,
    min: 1,
    description: 'Maximum tokens per document.',
  }),
  'limits.graphql.maxDepth': count({
    default: 10,
    min: 1,
    description: 'Maximum selection depth of an operation.',
  }),
  'limits.graphql.maxAliases': count({
    default: 30,
    description: 'Maximum aliases per operation.',
  }),
  'limits.graphql.maxDirectives': count({
    default: 50,
    description: 'Maximum directives per operation.',
  }),
  'limits.graphql.maxRootFields': count({
    default: 30,
    min: 1,
    description: 'Maximum root fields per operation: those of Query, Mutation or Subscription.',
  }),
  'limits.graphql.maxFields': count({
    default: 1_000,
    min: 1,
    description: 'Maximum fields per operation; those of a fragment count each time it is spread.',
  }),
  'limits.graphql.maxResultValues': count({
    default: 1_000_000,
    min: 1,
    description: 'Maximum values in a result: objects, list items and leaves.',
  }),
  'limits.graphql.maxResultBytes': count({
    default: 16 * 1024 * 1024,
    min: 1_024,
    description: 'Maximum size of a result, in bytes of JSON.',
  }),
  'limits.graphql.maxBodyBytes': count({
    default: 102_400,
    min: 1,
    description: 'Maximum body size of the GraphQL door, in bytes.',
  }),
  'limits.graphql.maxCacheBytes': count({
    default: 32 * 1024 * 1024,
    description: 'Maximum size of the cache of parsed, validated and planned documents, in bytes.',
  }),
  'limits.graphql.maxWebSockets': count({
    default: 5_000,
    description: 'Maximum WebSockets of the GraphQL door; 0 allows none.',
  }),
  'limits.graphql.maxSubscriptions': count({
    default: 20_000,
    min: 1,
    description: 'Maximum operations in progress over all WebSockets, including subscriptions.',
  }),
  'limits.graphql.maxPerWebSocket': count({
    default: 100,
    min: 1,
    description: 'Maximum operations in progress on one WebSocket, including subscriptions.',
  }),
  'limits.graphql.maxUsers': count({
    default: 100_000,
    min: 2,
    description: 'Maximum users that the GraphQL door keeps in memory.',
  }),
  ...corsOptions('graphql', 'GraphQL'),
} as const;

/** The options of the REST door and of the users that it serves. */
export const restOptions = {
  'rest.port': port({
    env: 'REST_PORT',
    default: 8000,
    description: 'Port of the REST door; 0 picks a free one. unix:<path> for a Unix socket.',
  }),
  'rest.search': choice({
    env: 'REST_SEARCH',
    default: 'none',
    choices: SEARCH_LEVELS,
    description:
      'Indexes for filtering and sorting more than 10,000 users by name and email: keys for whole values, prefixes and orders, text also for parts of values. none makes creates cheapest (none, keys, text).',
  }),
  'limits.rest.idempotencyHours': count({
    default: 24,
    min: 1,
    description: 'Retention of the outcomes of creates with an Idempotency-Key, in hours.',
  }),
  'limits.rest.maxImportBytes': count({
    default: 4 * 1024 ** 3,
    description:
      'Maximum size of an import of users over REST, in bytes; lines before the limit stay stored.',
  }),
  'rest.requireIfMatch': toggle({
    env: 'REST_REQUIRE_IF_MATCH',
    default: false,
    description:
      'Whether updates and deletions over REST require If-Match, so that no client overwrites a version that it has not read.',
  }),
  ...corsOptions('rest', 'REST'),
  'limits.rest.maxStreams': count({
    default: 1_000,
    min: 1,
    description: 'Maximum concurrent event streams of the REST door.',
  }),
  'limits.users.maxEvents': count({
    default: 100_000,
    min: 1_000,
    description:
      'Maximum number of change events of users (created, updated, deleted) that the database keeps.',
  }),
  'limits.users.eventHours': count({
    default: 24,
    min: 1,
    description: 'Retention of change events of users, in hours.',
  }),
  'users.uniqueEmail': toggle({
    env: 'USERS_UNIQUE_EMAIL',
    default: false,
    description:
      'Whether emails of users in the database must be unique; A to Z compare equal in either case. The start refuses a database with duplicates and names them.',
  }),
} as const;

/** The options of all doors' HTTP. */
export const httpOptions = {
  'http.trustProxy': list({
    ...trustedProxies,
    env: 'TRUST_PROXY',
    default: [],
    description:
      'Addresses and CIDR ranges of the proxies in front of the doors (also loopback, linklocal, uniquelocal): Portico uses only their X-Forwarded-For, -Host and -Proto, for the limit on failed log-ins, rates, shares of the room for bodies, links and /httpexchanges. true trusts whoever connects, but no further address in X-Forwarded-For: clients that reach a door without a proxy can claim any address.',
  }),
  'http.hosts': list({
    env: 'HTTP_HOSTS',
    default: [],
    expected: 'a list of host names and IP addresses, without ports',
    pattern: { test: (text) => isIPv6(text) || (/^[\w.-]+$/.test(text) && URL.canParse(`http://${text}`)) },
    description:
      'Host names of the doors, in addition to localhost. GraphQL, REST and management refuse requests for any other name if they need no credentials and listen on loopback, or if this is set. The console always does.',
  }),
  'http.fastPath': toggle({
    env: 'HTTP_FAST_PATH',
    default: true,
    description:
      "Whether plain requests take the fast path, which sends the same bytes without Fastify and Node's HTTP parser.",
  }),
  'limits.http.maxConnections': count({
    default: 10_000,
    min: 1,
    description:
      'Maximum connections per door. Beyond it, Portico closes the connections that have been idle for longest, at least a second, in favour of new ones.',
  }),
  'limits.http.maxConnectionsPerAddress': count({
    default: 2_500,
    min: 1,
    description:
      'Maximum connections per door from one address, or one IPv6 network of 64 bits. Ignored if http.trustProxy names proxies, because their connections carry all clients.',
  }),
  'limits.http.maxUnreadBytes': count({
    default: 64 * 1024 * 1024,
    description:
      'Maximum bytes of replies, event streams and WebSockets that clients have not read yet, over all doors. Beyond it, Portico disconnects the oldest clients that have read nothing for a second. If there are none, a new reply over 16 KiB is a 503, and a long one waits before its next piece.',
  }),
} as const;
