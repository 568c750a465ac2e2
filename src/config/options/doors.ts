import { isIP, isIPv6 } from 'node:net';
import { LIMITS } from '@portico/transport/limits';
import { NAMED_RANGES, type Trust, trustAddresses } from '../../core/addresses.ts';
import { SEARCH_LEVELS } from '../../relations/user.ts';
import { cors } from './access.ts';
import { choice, count, inModule, list, path, port, text, toggle } from './option.ts';

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

/** HTTP at all doors. */
export const http = {
  trustProxy: list({
    ...trustedProxies,
    env: 'TRUST_PROXY',
    default: [],
    help: 'Addresses and CIDR ranges of the proxies in front of the doors (also loopback, linklocal, uniquelocal): Portico uses only their X-Forwarded-For, -Host and -Proto, for the limit on failed log-ins, rates, shares of the room for bodies, links and /httpexchanges. true trusts whoever connects, but no further address in X-Forwarded-For: clients that reach a door without a proxy can claim any address.',
  }),
  hosts: list({
    env: 'HTTP_HOSTS',
    default: [],
    expected: 'a list of host names and IP addresses, without ports',
    pattern: { test: (text) => isIPv6(text) || (/^[\w.-]+$/.test(text) && URL.canParse(`http://${text}`)) },
    help: 'Host names of the doors, in addition to localhost. GraphQL, REST and management refuse requests for any other name if they need no credentials and listen on loopback, or if this is set. The console always does.',
  }),
  fastPath: toggle({
    env: 'HTTP_FAST_PATH',
    default: true,
    help: "Whether plain requests take the fast path, which sends the same bytes without Fastify and Node's HTTP parser.",
  }),
  maxConnections: count({
    default: 10_000,
    min: 1,
    help: 'Maximum connections per door. Beyond it, Portico closes the connections that have been idle for longest, at least a second, in favour of new ones.',
  }),
  maxConnectionsPerAddress: count({
    default: 2_500,
    min: 1,
    help: 'Maximum connections per door from one address, or one IPv6 network of 64 bits. Ignored if http.trustProxy names proxies, because their connections carry all clients.',
  }),
  maxUnreadBytes: count({
    default: LIMITS.maxUnread,
    help: 'Maximum bytes of replies, event streams and WebSockets that clients have not read yet, over all doors. Beyond it, Portico disconnects the oldest clients that have read nothing for a second. If there are none, a new reply over 16 KiB is a 503, and a long one waits before its next piece.',
  }),
} as const;

/** The GraphQL door. */
export const graphql = {
  port: port({
    env: 'GRAPHQL_PORT',
    default: 4000,
    help: 'Port of the GraphQL door; 0 picks a free one. unix:<path> for a Unix socket.',
  }),
  path: path({
    env: 'GRAPHQL_PATH',
    default: '/graphql',
    root: false,
    help: 'Path of the GraphQL endpoint.',
  }),
  users: choice({
    env: 'GRAPHQL_USERS',
    default: 'memory',
    choices: ['memory', 'database'],
    help: 'Users that GraphQL serves: its own in memory, or those of the database, like REST (memory, database).',
  }),
  introspection: toggle({
    env: 'GRAPHQL_INTROSPECTION',
    default: true,
    help: 'Whether clients may introspect the schema; GraphiQL needs it.',
  }),
  suggestions: toggle({
    env: 'GRAPHQL_SUGGESTIONS',
    default: true,
    help: 'Whether errors suggest names that the client may have meant.',
  }),
  persistedQueries: toggle({
    env: 'GRAPHQL_PERSISTED_QUERIES',
    default: true,
    help: "Whether clients may register documents by their hash (Apollo's automatic persisted queries).",
  }),
  documents: text({
    env: 'GRAPHQL_DOCUMENTS',
    unset: 'none',
    placeholder: 'path',
    help: "Trusted documents, which clients request by id: a JSON file (documents by id, Relay's persisted queries, Apollo's manifest) or a folder of <id>.graphql files.",
  }),
  onlyDocuments: toggle({
    env: 'GRAPHQL_ONLY_DOCUMENTS',
    default: false,
    help: 'Whether to refuse all documents except the trusted ones.',
  }),
  maxBatch: count({
    env: 'GRAPHQL_MAX_BATCH',
    default: 0,
    help: 'Maximum operations in a batch, a JSON array of requests; 0 refuses batches.',
  }),
  maxTokens: count({
    default: 1_000,
    min: 1,
    help: 'Maximum tokens per document.',
  }),
  maxDepth: count({
    default: 10,
    min: 1,
    help: 'Maximum selection depth of an operation.',
  }),
  maxAliases: count({
    default: 30,
    help: 'Maximum aliases per operation.',
  }),
  maxDirectives: count({
    default: 50,
    help: 'Maximum directives per operation.',
  }),
  maxRootFields: count({
    default: 30,
    min: 1,
    help: 'Maximum root fields per operation: those of Query, Mutation or Subscription.',
  }),
  maxFields: count({
    default: 1_000,
    min: 1,
    help: 'Maximum fields per operation; those of a fragment count each time it is spread.',
  }),
  maxResultValues: count({
    default: 1_000_000,
    min: 1,
    help: 'Maximum values in a result: objects, list items and leaves.',
  }),
  maxResultBytes: count({
    default: 16 * 1024 * 1024,
    min: 1_024,
    help: 'Maximum size of a result, in bytes of JSON.',
  }),
  maxBodyBytes: count({
    default: 102_400,
    min: 1,
    help: 'Maximum body size of the GraphQL door, in bytes.',
  }),
  maxCacheBytes: count({
    default: 32 * 1024 * 1024,
    help: 'Maximum size of the cache of parsed, validated and planned documents, in bytes.',
  }),
  maxWebSockets: count({
    default: 5_000,
    help: 'Maximum WebSockets of the GraphQL door; 0 allows none.',
  }),
  maxSubscriptions: count({
    default: 20_000,
    min: 1,
    help: 'Maximum operations in progress over all WebSockets, including subscriptions.',
  }),
  maxPerWebSocket: count({
    default: 100,
    min: 1,
    help: 'Maximum operations in progress on one WebSocket, including subscriptions.',
  }),
  maxUsers: count({
    default: 100_000,
    min: 2,
    help: 'Maximum users that the GraphQL door keeps in memory.',
  }),
  mutations: choice({
    default: 'together',
    choices: ['together', 'single'],
    help: 'Whether the mutations of relations in one operation are one transaction, or each is a single one (together, single).',
  }),
  cors: cors('graphql', 'GraphQL'),
  typeDefs: inModule({
    shape: 'string, DocumentNode or an array of them',
    help: 'GraphQL type definitions. They extend the built-in schema (`extend type Query { ... }`), or replace it if they have a `type Query` or a `schema`.',
  }),
  resolvers: inModule({
    shape: '{ [type]: { [field]: (parent, args, context, info) => value } }',
    help: 'Resolvers by type and field; `{ subscribe, resolve }` for a subscription, `__resolveType` and `__isTypeOf` for abstract types, a GraphQLScalarType or its functions for a scalar, the internal values for an enum.',
  }),
  context: inModule({
    shape: '(request, { users }) => context',
    help: 'Creates the context of the resolvers for a request; by default `{ users }`, the users of the door.',
  }),
  schema: inModule({
    shape: 'GraphQLSchema',
    help: 'A complete GraphQL schema, in place of `typeDefs` and `resolvers`.',
  }),
} as const;

/** The REST door. */
export const rest = {
  port: port({
    env: 'REST_PORT',
    default: 8000,
    help: 'Port of the REST door; 0 picks a free one. unix:<path> for a Unix socket.',
  }),
  users: choice({
    env: 'REST_USERS',
    default: 'contract',
    choices: ['contract', 'standard'],
    help: 'Paths and replies of users: those of the contract, or those of every other relation, such as 404, 201 and PATCH /users/7 (contract, standard).',
  }),
  search: choice({
    env: 'REST_SEARCH',
    default: 'none',
    choices: SEARCH_LEVELS,
    help: 'Indexes for filtering and sorting more than 10,000 users by name and email: keys for whole values, prefixes and orders, text also for parts of values. none makes creates cheapest (none, keys, text).',
  }),
  idempotencyHours: count({
    default: 24,
    min: 1,
    help: 'Retention of the outcomes of creates with an Idempotency-Key, in hours.',
  }),
  maxBodyBytes: count({
    default: 64 * 1024,
    min: 1,
    help: 'Maximum body size of the REST door, in bytes; imports have their own limit.',
  }),
  maxImportBytes: count({
    default: 4 * 1024 ** 3,
    help: 'Maximum size of an import of users over REST, in bytes; lines before the limit stay stored.',
  }),
  requireIfMatch: toggle({
    env: 'REST_REQUIRE_IF_MATCH',
    default: false,
    help: 'Whether updates and deletions over REST require If-Match, so that no client overwrites a version that it has not read.',
  }),
  maxStreams: count({
    default: 1_000,
    min: 1,
    help: 'Maximum concurrent event streams of the REST door.',
  }),
  cors: cors('rest', 'REST'),
} as const;

/** Users in the database, and their events. */
export const users = {
  maxEvents: count({
    default: 100_000,
    min: 1_000,
    help: 'Maximum number of change events of users (created, updated, deleted) that the database keeps.',
  }),
  eventHours: count({
    default: 24,
    min: 1,
    help: 'Retention of change events of users, in hours.',
  }),
  uniqueEmail: toggle({
    env: 'USERS_UNIQUE_EMAIL',
    default: false,
    help: 'Whether emails of users in the database must be unique; A to Z compare equal in either case. The start refuses a database with duplicates and names them.',
  }),
} as const;
