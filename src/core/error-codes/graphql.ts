import type { ErrorEntries } from './entry.ts';

/** Codes of the GraphQL door. */
export const GRAPHQL_CODES = {
  INCREMENTAL_DELIVERY: {
    status: 400,
    text: 'The operation asks for incremental delivery, by @defer or @stream; leave the directive out.',
  },
  INTERNAL_SERVER_ERROR: { text: 'A resolver failed; find the cause in the log.' },
  INVALID_DOCUMENT: {
    status: 400,
    text: 'The document has a syntax error or does not fit the schema, or has no such operation; correct what the errors name.',
  },
  LIMIT_EXCEEDED: {
    status: 400,
    text: 'The document or its result exceeds the limit that is named; ask for less or raise it.',
  },
  MALFORMED_REQUEST: {
    status: 400,
    text: 'The parameters are no GraphQL request; correct the one that is named.',
  },
  MUTATION_BY_GET: { status: 405, text: 'A mutation came by GET; send it by POST.' },
  NEEDS_EVENT_STREAM: { status: 406, text: 'A subscription needs "Accept: text/event-stream"; send it.' },
  NOT_ACCEPTABLE: {
    status: 406,
    text: 'The Accept header excludes every type that the path serves; change it.',
  },
  BATCH_REFUSED: {
    status: 400,
    text: 'Batching is off, or the batch has more operations than `GRAPHQL_MAX_BATCH` allows; send fewer at once.',
  },
  CLIENT_GONE: {
    text: 'The client closed its side of the connection while the operation ran; keep it open until the reply.',
  },
  PERSISTED_QUERY_MISMATCH: {
    status: 400,
    text: 'The hash is not that of the query; send its SHA-256 in lower-case hex.',
  },
  PERSISTED_QUERY_NOT_FOUND: {
    status: 400,
    text: 'No query is registered by this hash; send the query with it once, as Apollo Client and urql do.',
  },
  PERSISTED_QUERY_NOT_SUPPORTED: {
    status: 400,
    text: 'Automatic persisted queries are turned off; send the query itself.',
  },
  DOCUMENT_REQUIRED: {
    status: 400,
    text: 'Only trusted documents run here; send the id of one of them, or have the operator add yours.',
  },
  DOCUMENTS_INVALID: {
    text: 'The trusted documents of GraphQL cannot be used; correct the file or the document that is named.',
  },
  DOCUMENT_NOT_FOUND: {
    status: 400,
    text: 'No trusted document has this id; compare it with what `GRAPHQL_DOCUMENTS` names.',
  },
  STOPPING: { status: 503, text: 'The service is stopping; connect again, to another one.' },
  TOO_MANY_WEBSOCKETS: {
    status: 503,
    text: 'GraphQL has as many WebSockets as it may; try again later, or raise `GRAPHQL_MAX_WEB_SOCKETS`.',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    text: 'The endpoint does not read bodies of this media type; send application/json.',
  },
  UNSUPPORTED_CHARSET: {
    status: 415,
    text: 'The body is declared in another charset than UTF-8; send UTF-8.',
  },
  WEBSOCKET_HANDSHAKE: {
    status: 400,
    text: 'The headers of a WebSocket handshake are missing or wrong; use a client for WebSockets of version 13.',
  },
  WEBSOCKET_PROTOCOL: {
    status: 400,
    text: 'A WebSocket asked for another sub-protocol; use a client for graphql-transport-ws, such as graphql-ws.',
  },
} as const satisfies ErrorEntries;
