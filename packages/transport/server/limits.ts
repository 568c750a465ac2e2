/** What every listener allows a connection and a request. Times are in milliseconds, sizes in bytes. */
export const LIMITS = {
  /** From the first byte of a request to the end of its headers. */
  headersTimeout: 10_000,
  /** From the first byte of a request to the end of its body. */
  requestTimeout: 30_000,
  /** How often the two above are looked at; Node's 30 s would let a slow header live for 40. */
  checkInterval: 2_000,
  /** A connection on which nothing moves while a reply is under way: Node never times out a slow reader itself. */
  idleReplyTimeout: 30_000,
  /** An idle connection kept for the client's next request. */
  keepAliveTimeout: 5_000,
  maxHeaderBytes: 16 * 1024,
  maxHeaders: 100,
  maxConnections: 10_000,
  maxRequestsPerConnection: 10_000,
  /** Nesting of a JSON body. */
  jsonDepth: 64,
} as const;
