type ErrorEntries = Readonly<Record<string, ErrorEntry>>;

interface ErrorEntry {
  /** The usual HTTP status of a refusal with this code. */
  readonly status?: number;
  /** The meaning of the code, and what to do; the title of problem details. */
  readonly text: string;
}

const START_CODES = {
  BACKUP: { text: 'A backup or a restore was refused or failed; see the message.' },
  CANNOT_LISTEN: { text: 'A door cannot open its port; free the port or configure another address.' },
  CONFIG_INVALID: { text: 'The configuration is invalid; correct every listed problem.' },
  DATABASE_OPEN: {
    text: 'The database cannot be opened or written to, or another service runs on it; do what the message says.',
  },
  DOOR_SETUP: {
    text: 'The setup of a door in the configuration module failed or does not fit the door; correct what the message names.',
  },
  EMPTY_SECRET: { text: 'A configured secret is empty; give it a value or remove it.' },
  HEALTH_CHECK_NAME: {
    text: 'A health check has no name or the name of another one; give each its own name.',
  },
  MANAGEMENT_OPTIONS: { text: 'The management door cannot be built from its options; change the one named.' },
  METER: { text: 'A meter is used contrary to its declaration; report this bug.' },
  MOVE: { text: 'A move of the database was refused or stopped; do what the message says and run it again.' },
  PASSWORD_HASH: { text: 'A password hash is invalid; create one with "portico hash-password".' },
  REPLY: { text: 'A receiver sent no valid HTTP reply; see what answers at its address.' },
  SCHEMA_STEP: {
    text: 'A step to the tables of relations was refused; change the rows or the declaration, or allow the step, as the message says.',
  },
  TLS_FILES: { text: 'A TLS file cannot be used; correct what the message names.' },
  UNSIGNABLE: { text: 'A delivery cannot be signed; change the named header or id.' },
  UNUSABLE_SECRET: {
    text: 'A secret does not fit its signature scheme; configure one in the required form.',
  },
  USAGE: { text: 'A command was called incorrectly; run "portico help" with its name.' },
  USER_NAME: {
    text: 'No Basic header can carry this user name; choose one without colons or control characters.',
  },
} as const satisfies ErrorEntries;

const DATABASE_CODES = {
  CONNECTION_LOST: { text: 'A connection to PostgreSQL broke during a statement; see OUTCOME_UNKNOWN.' },
  NOT_SENT: {
    text: 'A statement was not sent, because its connection to PostgreSQL was lost; it is sent again.',
  },
  OUTCOME_UNKNOWN: {
    status: 503,
    text: 'The database did not confirm a write that was sent; check whether it is stored before you repeat it.',
  },
  READ_ONLY_SERVER: { text: 'The PostgreSQL server is a replica; name the primary in the URL.' },
  STORE_UNAVAILABLE: {
    status: 503,
    text: 'The database cannot answer now and nothing was stored; try again after the time in Retry-After.',
  },
  UNCONFIRMED: { text: 'PostgreSQL committed, but no replica confirmed it; see OUTCOME_UNKNOWN.' },
} as const satisfies ErrorEntries;

const USER_CODES = {
  COLLECTION_FULL: { text: 'GraphQL cannot keep more users in memory; raise `limits.graphql.maxUsers`.' },
  USER_NOT_FOUND: { status: 404, text: 'There is no user with this id; it may have been deleted.' },
  INVALID_USER: {
    status: 400,
    text: 'The name or the email of a user is missing, blank, too long or malformed; correct it. The message of GraphQL, problem details and the log of REST say what is wrong.',
  },
  EMAIL_TAKEN: {
    status: 409,
    text: 'Another user has this email, in upper or lower case, and `USERS_UNIQUE_EMAIL` is on; choose another one or change that user.',
  },
  UNKNOWN_PARAMETER: {
    status: 400,
    text: 'The list has no such query parameter; correct its name, or send `Prefer: handling=lenient` to ignore it.',
  },
  INVALID_PARAMETER: {
    status: 400,
    text: 'A query parameter has an invalid value; send one that the message allows.',
  },
  INVALID_CURSOR: {
    status: 400,
    text: 'The cursor does not belong to this list, or was changed; start again without a cursor.',
  },
  SEARCH_OFF: {
    status: 400,
    text: 'There are more than 10,000 users or rows and no index for this search; set `REST_SEARCH` for users, and do as the message says for a relation.',
  },
  TOO_MANY_MATCHES: {
    status: 400,
    text: 'More than 10,000 users would have to be sorted or filtered for a page; add a narrower filter, or do as the message says.',
  },
  EVENTS_GONE: {
    status: 410,
    text: 'The event in `Last-Event-ID` is no longer kept, or not in this database; read the list again and follow without an id.',
  },
  INVALID_EVENT_ID: {
    status: 400,
    text: 'The `Last-Event-ID` is not the id of an event of this list; send the last one that you received, or none.',
  },
  TOO_MANY_STREAMS: {
    status: 503,
    text: 'Too many clients follow changes; try again after the time in Retry-After, or raise `limits.rest.maxStreams`.',
  },
  INVALID_IDEMPOTENCY_KEY: {
    status: 400,
    text: 'The `Idempotency-Key` is empty, longer than 255 characters or not visible ASCII; send a UUID for example.',
  },
  IDEMPOTENCY_KEY_REUSED: {
    status: 422,
    text: 'The `Idempotency-Key` was sent with another body before; send a new key with a new request.',
  },
  IDEMPOTENCY_KEY_IN_USE: {
    status: 409,
    text: 'A request with this `Idempotency-Key` is in progress; send it again for its reply.',
  },
  PRECONDITION_FAILED: {
    status: 412,
    text: 'The user or row has a different version from the one in `If-Match`, or was changed after `If-Unmodified-Since`; nothing was written. Read it again.',
  },
  PRECONDITION_REQUIRED: {
    status: 428,
    text: 'An update or a deletion needs `If-Match` with the ETag of the user or row, because `REST_REQUIRE_IF_MATCH` is on, or a deletion of many rows needs `Prefer: max-affected`; send it.',
  },
  SLOW_SUBSCRIBER: { text: 'A subscriber fell too far behind; subscribe again and read what it missed.' },
} as const satisfies ErrorEntries;

/** Codes of operations on the rows of relations. */
const RELATION_CODES = {
  INVALID_BATCH: {
    status: 400,
    text: 'A write of a batch cannot be read; correct the member that `errors` points to.',
  },
  INVALID_ROW: {
    status: 400,
    text: 'A row does not fit the columns of its relation; correct what `errors` names, each with its place.',
  },
  NOT_ALLOWED: {
    status: 403,
    text: 'A rule of the relation does not let the caller do this; leave out the columns that `errors` names, or ask for access.',
  },
  HOOK_REFUSED: {
    status: 409,
    text: 'A hook of the relation refuses the row; `errors` says why, with the code of the hook as `reason`.',
  },
  HOOK_TIMEOUT: {
    status: 503,
    text: 'The hooks of a relation took too long, and nothing was stored; try again, or raise `before.timeout`.',
  },
  TAKEN: {
    status: 409,
    text: 'Another row has the same values in the named columns, which must be unique; change them or that row.',
  },
  REFERENCE_MISSING: {
    status: 409,
    text: 'The row that the named columns refer to does not exist; create it first or name another one.',
  },
  REFERENCED: {
    status: 409,
    text: 'Rows of the named relation refer to the row; remove or change them first.',
  },
} as const satisfies ErrorEntries;

/** Codes of authentication and authorization, at every door that requires credentials. */
const ACCESS_CODES = {
  LACKS_SCOPE: {
    status: 403,
    text: 'The credentials lack the scope that WWW-Authenticate names; use credentials with that scope.',
  },
  NO_KEYS: {
    status: 503,
    text: 'The keys of the identity provider cannot be read; try again after Retry-After.',
  },
  OVERLOADED: {
    status: 503,
    text: 'The service is overloaded: the event loop or a commit is later than its limit allows; try again after Retry-After.',
  },
  RATE_LIMITED: {
    status: 429,
    text: 'The client has made more requests than its rate allows; wait for the time in Retry-After.',
  },
  TOO_MANY_ATTEMPTS: {
    status: 429,
    text: 'Too many wrong credentials came from this address; wait for the time in Retry-After.',
  },
  TOO_MANY_LOGINS: {
    status: 503,
    text: 'Too many passwords are being checked; try again after Retry-After.',
  },
  UNAUTHORIZED: {
    status: 401,
    text: 'The request has no valid credentials; send the kind that WWW-Authenticate names.',
  },
} as const satisfies ErrorEntries;

const IMPORT_CODES = {
  INVALID_IMPORT: {
    status: 400,
    text: 'An import does not match its type: a CSV without the right columns in its first line, or an invalid or incomplete JSON array. The message says what is wrong.',
  },
  IMPORT_TOO_LARGE: {
    status: 413,
    text: 'An import has more bytes than `limits.rest.maxImportBytes`, or is too large for one transaction; split it, or leave out `transaction=all`.',
  },
  IMPORT_IN_PROGRESS: {
    status: 409,
    text: 'Another import with the same key is in progress; wait until it has ended and send it again.',
  },
  IMPORT_KEY_REUSED: {
    status: 422,
    text: 'The key was used for another import, which stored other users than this one begins with; use a new key for each import.',
  },
  LINE_TOO_LONG: { status: 400, text: 'A line of an import is longer than any valid user; shorten it.' },
  MALFORMED_CSV: {
    status: 400,
    text: 'A line of a CSV has a wrong number of fields, or a misplaced quote; put fields with commas or quotes in quotes and double the quotes inside.',
  },
} as const satisfies ErrorEntries;

const DOOR_CODES = {
  BAD_REQUEST: {
    status: 400,
    text: 'The request was refused without a more specific code; correct the request.',
  },
  BODY_TOO_LARGE: { status: 413, text: 'The body is larger than its route allows; send less.' },
  BUSY: {
    status: 503,
    text: 'Bodies, imports or unread replies of other clients take all the room; try again after the time in Retry-After.',
  },
  CROSS_SITE: {
    status: 403,
    text: 'A browser sent the request from a page of another site; send it from the same origin. A proxy must pass on Host, or be named in TRUST_PROXY and send X-Forwarded-Host.',
  },
  DUPLICATE_FIELD: {
    status: 400,
    text: 'The request repeats a header field that may occur only once, such as Authorization or Content-Type; send one.',
  },
  DUPLICATE_HOST: { status: 400, text: 'The request has several Host headers; send one.' },
  INTERNAL: { status: 500, text: 'An unexpected error; find its cause in the log by the id of the request.' },
  INVALID_UTF8: { status: 400, text: 'The body is not valid UTF-8; encode it as UTF-8.' },
  MALFORMED_FORM: { status: 400, text: 'The form cannot be decoded; send valid percent-encoded UTF-8.' },
  MALFORMED_JSON: { status: 400, text: 'The body is not valid JSON; correct it.' },
  MISSING_HOST: { status: 400, text: 'The request has no Host header; send one.' },
  NO_ROUTE: {
    status: 404,
    text: 'The door has no such path, or the path does not accept this method (405); check both.',
  },
  NO_WEBSOCKET: {
    status: 400,
    text: 'The path supports no WebSocket, or another request is in progress on the connection; send a plain request.',
  },
  PROTO_KEY: { status: 400, text: 'The body has the key "__proto__"; remove it.' },
  TOO_DEEP: { status: 400, text: 'The JSON is nested too deeply; flatten it.' },
  TOO_MANY_HEADERS: { status: 431, text: 'The request has too many header fields; send fewer.' },
  TOO_SLOW: {
    status: 408,
    text: 'The body arrived so slowly that it was dropped in favour of other requests; send it faster, or again later.',
  },
  TRANSFER_ENCODING_1_0: {
    status: 400,
    text: 'An HTTP/1.0 request has a Transfer-Encoding; send a Content-Length or use HTTP/1.1.',
  },
  UNKNOWN_EXPECTATION: {
    status: 417,
    text: 'The Expect header asks for something other than 100-continue; leave it out.',
  },
  UNKNOWN_HOST: {
    status: 403,
    text: 'The host of the request is not a name of the door; use localhost, or add the name to HTTP_HOSTS.',
  },
} as const satisfies ErrorEntries;

const GRAPHQL_CODES = {
  INCREMENTAL_DELIVERY: {
    status: 400,
    text: 'The operation asks for incremental delivery, by @defer or @stream; leave the directive out.',
  },
  INTERNAL_SERVER_ERROR: { text: 'A resolver failed; find the cause in the log.' },
  INVALID_DOCUMENT: {
    status: 400,
    text: 'The document has a syntax error, does not match the schema, or lacks the operation; correct what the errors name.',
  },
  LIMIT_EXCEEDED: {
    status: 400,
    text: 'The request, the document or its result exceeds the named limit; request less or raise it.',
  },
  MALFORMED_REQUEST: {
    status: 400,
    text: 'The parameters are not a GraphQL request; correct the named one.',
  },
  MUTATION_BY_GET: { status: 405, text: 'A mutation was sent by GET; send it by POST.' },
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
    text: 'No query is registered under this hash; send the query with it once, as Apollo Client and urql do.',
  },
  PERSISTED_QUERY_NOT_SUPPORTED: {
    status: 400,
    text: 'Automatic persisted queries are turned off; send the query itself.',
  },
  DOCUMENT_REQUIRED: {
    status: 400,
    text: 'Only trusted documents are allowed; send the id of one, or ask the operator to add yours.',
  },
  DOCUMENTS_INVALID: {
    text: 'The trusted documents of GraphQL cannot be used; correct the file or the document that is named.',
  },
  DOCUMENT_NOT_FOUND: {
    status: 400,
    text: 'No trusted document has this id; compare it with what `GRAPHQL_DOCUMENTS` names.',
  },
  STOPPING: { status: 503, text: 'The service is stopping; connect again, to another instance.' },
  TOO_MANY_WEBSOCKETS: {
    status: 503,
    text: 'GraphQL has the maximum number of WebSockets; try again later, or raise `limits.graphql.maxWebSockets`.',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    text: 'The endpoint does not read bodies of this media type; send application/json.',
  },
  UNSUPPORTED_CHARSET: {
    status: 415,
    text: 'The body is declared in a charset other than UTF-8; send UTF-8.',
  },
  WEBSOCKET_HANDSHAKE: {
    status: 400,
    text: 'The headers of a WebSocket handshake are missing or wrong; use a client for WebSocket version 13.',
  },
  WEBSOCKET_PROTOCOL: {
    status: 400,
    text: 'A WebSocket asked for an unsupported sub-protocol; use a client for graphql-transport-ws, such as graphql-ws.',
  },
} as const satisfies ErrorEntries;

const MANAGEMENT_CODES = {
  AUDIT_QUERY: {
    status: 400,
    text: 'A parameter of the audit events is not valid; correct what the message names.',
  },
  CONSOLE_REFUSED: {
    status: 403,
    text: 'The client may not use the console, or the request does not come from the console; the message says what to set or send.',
  },
  CONSOLE_STREAMS: { status: 503, text: 'Too many consoles are open at once; close some or try later.' },
  CONSOLE_TOPIC: { status: 400, text: 'An event stream of the console must name its topics; name them.' },
  CPU_PROFILE_BUSY: { status: 429, text: 'A CPU profile is being recorded; wait until it ends.' },
  CPU_PROFILE_SECONDS: {
    status: 400,
    text: 'The duration of a CPU profile is out of range; choose another one.',
  },
  CUSTOM_ENDPOINT: {
    text: 'An operation of a custom endpoint failed; find the cause in the log.',
  },
  CUSTOM_ENDPOINT_TIMEOUT: {
    status: 503,
    text: 'An operation of a custom endpoint took too long; make it faster.',
  },
  DELIVERY_ACTION: { status: 400, text: 'The action is unknown; send "replay" or "discard".' },
  DELIVERY_OPEN: { status: 409, text: 'The delivery is open; wait until it ends, or discard it.' },
  DELIVERY_QUERY: {
    status: 400,
    text: 'The filter of deliveries is invalid; correct the named parameters.',
  },
  DELIVERY_SETTLED: { status: 409, text: 'The delivery has no open or dead job; there is nothing to do.' },
  DURATION: { status: 400, text: 'The duration is invalid; send ISO 8601 of at most a day, such as PT10M.' },
  FORBIDDEN: { status: 403, text: 'The user lacks the required role; log in as a user who has it.' },
  HEAP_DUMP_BUSY: { status: 429, text: 'A heap dump is being written; wait until it ends.' },
  HEAP_DUMP_MEMORY: { status: 503, text: 'There is too little memory for a heap dump; free some.' },
  HISTORY_QUERY: {
    status: 400,
    text: 'A query of the history is invalid; give a window and a time as documented.',
  },
  LOG_LEVEL: { status: 400, text: 'The log level is unknown; send one of the listed levels.' },
  LOG_NUMBER: { status: 400, text: 'A query of the log is invalid; give the number of an entry.' },
  LOGGER: { status: 400, text: 'The body for a logger is invalid; send an object with configuredLevel.' },
  METHOD_NOT_ALLOWED: {
    status: 405,
    text: 'The path does not support this method; Allow lists those that it supports.',
  },
  NO_DELIVERY: {
    status: 404,
    text: 'There is no delivery with this id; it may have been removed after its retention.',
  },
  NO_HANDLER: {
    status: 409,
    text: 'Nothing handles this delivery; configure a handler or a forward for it.',
  },
  NO_JSON: { status: 415, text: 'The body is not declared as JSON; send it as application/json.' },
  NO_METER: { status: 404, text: 'There is no such meter, or none with these tags; list the names first.' },
  NOT_FOUND: {
    status: 404,
    text: 'There is no such endpoint or row, or it is not exposed; see the index of endpoints, or the list of the relation.',
  },
  PARAMETER: { status: 400, text: 'A parameter is missing or given twice; give it once.' },
  SPRING_BOOT_ADMIN: {
    text: 'A Spring Boot Admin server refused a call; check its URL and its credentials.',
  },
  TEST_DELIVERY: {
    status: 400,
    text: 'A test delivery cannot be built; give a source, an event and data that match it.',
  },
  TEST_DELIVERY_UNSENT: {
    status: 502,
    text: 'The webhook door did not accept a connection for a test delivery; see its health and its log.',
  },
  TWO_PATTERNS: { status: 400, text: 'Several patterns were given; give one.' },
  WRONG_TAG: { status: 400, text: 'A tag is invalid; write it as key:value.' },
} as const satisfies ErrorEntries;

const WEBHOOK_CODES = {
  LEASE_LOST: {
    text: 'The process may have lost the lease of an attempt, so another one may handle the delivery; stop the work of the handler.',
  },
  ATTEMPT: { text: 'An attempt to forward a delivery failed; Portico retries it if that can help.' },
  REFUSED: {
    status: 401,
    text: 'The signature of a delivery is missing or wrong; compare the secrets of both sides.',
  },
  WRONG_TOKEN: {
    status: 401,
    text: 'The token in x-webhook-token is missing or wrong; send the configured one.',
  },
} as const satisfies ErrorEntries;

/** Codes of sending events to the endpoints of customers. */
const SENDING_CODES = {
  EVENT_REFUSED: {
    status: 400,
    text: 'The data of an event do not fit the schema of its type; correct what `errors` names, each with its place.',
  },
  FILTER: { text: 'The filter of an endpoint cannot be read; correct what the message names.' },
  INVALID_ENDPOINT: {
    status: 400,
    text: 'An endpoint, a tenant or an event type cannot be read; correct what `errors` names.',
  },
  INVALID_EVENT: {
    status: 400,
    text: 'An event cannot be read; correct what `errors` names, each with its place.',
  },
  NOTHING_TO_RESEND: {
    status: 409,
    text: 'The event is about to be sent to the endpoint anyway; wait for its next attempt.',
  },
  NO_ENDPOINT: {
    status: 404,
    text: 'No tenant, endpoint, event type or event has this name or id; it may have been removed.',
  },
  SCHEMA: { text: 'The schema of an event type cannot be used; correct what the message names.' },
  TENANT_CHANGED: {
    text: 'The endpoints of a tenant changed again and again while an event was published; publish it again.',
  },
  TOO_MANY_ENDPOINTS: {
    status: 409,
    text: 'The tenant has as many endpoints as it may have; remove one first.',
  },
} as const satisfies ErrorEntries;

/** All error codes of Portico; each is stable. `scripts/docs.ts` writes them into docs/ERRORS.md. */
export const ERROR_CODES = {
  ...START_CODES,
  ...DATABASE_CODES,
  ...USER_CODES,
  ...RELATION_CODES,
  ...ACCESS_CODES,
  ...IMPORT_CODES,
  ...DOOR_CODES,
  ...GRAPHQL_CODES,
  ...MANAGEMENT_CODES,
  ...WEBHOOK_CODES,
  ...SENDING_CODES,
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;
