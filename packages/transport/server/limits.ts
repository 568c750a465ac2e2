/** The limits of connections and requests on every listener. Times are in milliseconds, sizes in bytes. */
export const LIMITS = {
  /** From the first byte of a request to the end of its headers. */
  headersTimeout: 10_000,
  /** From the first byte of a request to the end of its body. */
  requestTimeout: 30_000,
  /**
   * How often the two timeouts above are checked; with Node's default of 30 s, a slow header could last 40 s.
   */
  checkInterval: 2_000,
  /**
   * Closes a connection without activity while a reply is in progress: Node never times out a slow reader.
   */
  idleReplyTimeout: 30_000,
  /** How long an idle connection is kept open for the next request. */
  keepAliveTimeout: 5_000,
  maxHeaderBytes: 16 * 1024,
  maxHeaders: 100,
  maxRequestsPerConnection: 10_000,
  /**
   * Interval of signs of life on event streams and WebSockets. They keep proxies from closing a quiet
   * connection and detect clients that have left.
   */
  signOfLife: 12_000,
  /** Maximum unread bytes of events when the next one is sent. */
  maxUnreadEvents: 256 * 1024,
  /** Maximum unread bytes of all replies of a listener that gets no budget for them. */
  maxUnread: 64 * 1024 * 1024,
  /** Maximum memory of all bodies of a listener that gets no budget for them. */
  maxBodies: 64 * 1024 * 1024,
  /** The share of a body budget that large bodies may fill, so that a few leave capacity for others. */
  largeBodies: 0.5,
  /** Maximum nesting of a JSON body. */
  jsonDepth: 64,
  /** Maximum members and elements of a large JSON body. */
  json: { members: 20_000, elements: 50_000 },
} as const;
