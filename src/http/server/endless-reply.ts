import type { ServerResponse } from 'node:http';

/** Replies that last for as long as their clients want: streams of events, and connections that are WebSockets now. */
const ENDLESS = new WeakSet<ServerResponse>();

/** Notes that the client of a reply may leave it at any time: nothing is missing then. */
export function noteEndless(response: ServerResponse): void {
  ENDLESS.add(response);
}

/** Cuts such a reply, whose client misses something. */
export function cutEndless(response: ServerResponse): void {
  ENDLESS.delete(response);
  response.destroy();
}

/** Whether nothing is missing of a reply that has ended. */
export function isWhole(response: ServerResponse): boolean {
  return response.writableFinished || ENDLESS.has(response);
}
