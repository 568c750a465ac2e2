/** What the WebSockets of a door may be and do at the same time. */
export interface WebSocketLimits {
  /** Maximum WebSockets; 0 for a door without. Default 5,000. */
  readonly maxWebSockets: number;
  /** Maximum operations in progress over all WebSockets, subscriptions among them; default 20,000. */
  readonly maxSubscriptions: number;
  /** Maximum operations in progress on one WebSocket; default 100. */
  readonly maxPerWebSocket: number;
}

/** The limits where an option sets none. */
export const DEFAULT_WEB_SOCKET_LIMITS: WebSocketLimits = {
  maxWebSockets: 5_000,
  maxSubscriptions: 20_000,
  maxPerWebSocket: 100,
};
