import { isIP, isIPv6 } from 'node:net';
import { NAMED_RANGES, type Trust, trustAddresses } from '../../core/addresses.ts';
import { SEARCH_LEVELS } from '../../relations/user.ts';
import { corsOptions } from './access.ts';
import { choice, count, list, path, port, text, toggle } from './option.ts';

/** Stands for every address. */
const EVERY = 'true';
/** Stands for whoever connects on a Unix socket. */
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

/** Who may say which address a client has, as Fastify takes it. */
type TrustProxy = false | string[] | Trust;

/**
 * The option's value as Fastify takes it; false when empty, as Fastify parses proxy headers for any function. Its own
 * `true` would take the first address of X-Forwarded-For, which a client writes itself where its proxy adds to that.
 */
export function trustProxy(proxies: readonly string[]): TrustProxy {
  if (proxies.includes(EVERY)) return (_address, hop) => hop === 0;
  if (proxies.includes(SOCKETS)) return orSocket(proxies.filter((proxy) => proxy !== SOCKETS));
  return proxies.length > 0 && [...proxies];
}

/** Fastify compares addresses only, and who connects on a Unix socket has none. */
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
      'File with the certificate of all doors and its intermediates, as PEM; requires tls.key. The doors then speak TLS 1.2 and 1.3 only. Changes of the files are used without a restart.',
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
      'File with the authorities, as PEM, of which a client of the management door must have a certificate; requires tls.cert.',
  }),
  'webhook.clientCa': text({
    ...filePath,
    env: 'WEBHOOK_CLIENT_CA',
    unset: 'no client certificates',
    description:
      'File with the authorities, as PEM, of which a client of the webhook door must have a certificate; requires tls.cert.',
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
      'Users that GraphQL serves: its own in memory, or those of the database that REST serves (memory, database).',
  }),
  'graphql.introspection': toggle({
    env: 'GRAPHQL_INTROSPECTION',
    default: true,
    description: 'Schema introspection by clients; GraphiQL needs it.',
  }),
  'graphql.suggestions': toggle({
    env: 'GRAPHQL_SUGGESTIONS',
    default: true,
    description: 'Suggestions in errors of what the client may have meant.',
  }),
  'graphql.persistedQueries': toggle({
    env: 'GRAPHQL_PERSISTED_QUERIES',
    default: true,
    description: "Registration of documents by their hash: Apollo's automatic persisted queries.",
  }),
  'graphql.documents': text({
    env: 'GRAPHQL_DOCUMENTS',
    unset: 'none',
    placeholder: 'path',
    description:
      "Trusted documents, which clients name by their ids: a JSON file (documents by id, Relay's persisted queries, Apollo's manifest) or a folder of <id>.graphql files.",
  }),
  'graphql.onlyDocuments': toggle({
    env: 'GRAPHQL_ONLY_DOCUMENTS',
    default: false,
    description: 'Refusal of all documents but the trusted ones.',
  }),
  'graphql.maxBatch': count({
    env: 'GRAPHQL_MAX_BATCH',
    default: 0,
    description: 'Maximum operations of a batch, a JSON array of requests; 0 refuses batches.',
  }),
  'graphql.maxTokens': count({
    env: 'GRAPHQL_MAX_TOKENS',
    default: 1_000,
    min: 1,
    description: 'Maximum tokens per document.',
  }),
  'graphql.maxDepth': count({
    env: 'GRAPHQL_MAX_DEPTH',
    default: 10,
    min: 1,
    description: 'Maximum selection depth of an operation.',
  }),
  'graphql.maxAliases': count({
    env: 'GRAPHQL_MAX_ALIASES',
    default: 30,
    description: 'Maximum aliases per operation.',
  }),
  'graphql.maxDirectives': count({
    env: 'GRAPHQL_MAX_DIRECTIVES',
    default: 50,
    description: 'Maximum directives per operation.',
  }),
  'graphql.maxRootFields': count({
    env: 'GRAPHQL_MAX_ROOT_FIELDS',
    default: 30,
    min: 1,
    description: 'Maximum root fields per operation: those of Query, Mutation or Subscription.',
  }),
  'graphql.maxFields': count({
    env: 'GRAPHQL_MAX_FIELDS',
    default: 1_000,
    min: 1,
    description: 'Maximum fields per operation, those of a fragment each time it is spread.',
  }),
  'graphql.maxResultValues': count({
    env: 'GRAPHQL_MAX_RESULT_VALUES',
    default: 1_000_000,
    min: 1,
    description: 'Maximum values of a result: objects, items of lists and leaves.',
  }),
  'graphql.maxResultBytes': count({
    env: 'GRAPHQL_MAX_RESULT_BYTES',
    default: 16 * 1024 * 1024,
    min: 1_024,
    description: 'Maximum size of a result, in bytes of JSON.',
  }),
  'graphql.maxBodyBytes': count({
    env: 'GRAPHQL_MAX_BODY_BYTES',
    default: 102_400,
    min: 1,
    description: 'Maximum body size of the GraphQL door, in bytes.',
  }),
  'graphql.maxCacheBytes': count({
    env: 'GRAPHQL_MAX_CACHE_BYTES',
    default: 32 * 1024 * 1024,
    description: 'Maximum size of the cache of parsed, validated and planned documents, in bytes.',
  }),
  'graphql.maxWebSockets': count({
    env: 'GRAPHQL_MAX_WEB_SOCKETS',
    default: 5_000,
    description: 'Maximum WebSockets of the GraphQL door; 0 for a door without.',
  }),
  'graphql.maxSubscriptions': count({
    env: 'GRAPHQL_MAX_SUBSCRIPTIONS',
    default: 20_000,
    min: 1,
    description: 'Maximum operations in progress over all WebSockets, subscriptions among them.',
  }),
  'graphql.maxPerWebSocket': count({
    env: 'GRAPHQL_MAX_PER_WEB_SOCKET',
    default: 100,
    min: 1,
    description: 'Maximum operations in progress on one WebSocket, subscriptions among them.',
  }),
  'graphql.maxUsers': count({
    env: 'GRAPHQL_MAX_USERS',
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
      'Indexes of users, which lists of more than 10,000 users need to filter or sort by name and email: keys for whole values, prefixes and orders, text also for parts of them; none makes creates cheapest (none, keys, text).',
  }),
  'rest.idempotencyHours': count({
    env: 'REST_IDEMPOTENCY_HOURS',
    default: 24,
    min: 1,
    description: 'Time for which the outcome of a create with an Idempotency-Key is kept, in hours.',
  }),
  'rest.maxImportBytes': count({
    env: 'REST_MAX_IMPORT_BYTES',
    default: 4 * 1024 ** 3,
    description:
      'Maximum size of an import of users over REST, in bytes; what came before the limit was reached stays stored.',
  }),
  'rest.requireIfMatch': toggle({
    env: 'REST_REQUIRE_IF_MATCH',
    default: false,
    description:
      'Whether updates and deletions over REST need If-Match, so that no client overwrites what it has not read.',
  }),
  ...corsOptions('rest', 'REST'),
  'rest.maxStreams': count({
    env: 'REST_MAX_STREAMS',
    default: 1_000,
    min: 1,
    description: 'Maximum number of event streams of the REST door at the same time.',
  }),
  'users.maxEvents': count({
    env: 'USERS_MAX_EVENTS',
    default: 100_000,
    min: 1_000,
    description:
      'Maximum number of events of users (created, updated, deleted) that the database keeps for those who follow them.',
  }),
  'users.eventHours': count({
    env: 'USERS_EVENT_HOURS',
    default: 24,
    min: 1,
    description: 'Time for which the database keeps an event of a user, in hours.',
  }),
  'users.uniqueEmail': toggle({
    env: 'USERS_UNIQUE_EMAIL',
    default: false,
    description:
      'Whether no two users of the database may have the same email, A to Z in either case. The start refuses a database with duplicates and names them.',
  }),
} as const;

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
