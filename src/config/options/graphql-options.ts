import { corsOptions } from './access/cors-options.ts';
import { choice, count, path, port, text, toggle } from './option.ts';

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
