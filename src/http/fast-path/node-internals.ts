import { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * What the fast path uses of Node's HTTP server that Node does not document. It checks that all of it is there, and
 * closes itself where it is not.
 */
export interface NodeInternals {
  readonly replyInProgress: typeof replyInProgress;
  readonly parserOf: typeof parserOf;
}

/** The reply that a connection waits for or is getting. */
export function replyInProgress(socket: Socket): ServerResponse | undefined {
  const reply = (socket as { _httpMessage?: unknown })._httpMessage;
  return reply instanceof ServerResponse ? reply : undefined;
}

/** Gives a connection's bytes to Node's parser. */
export type Parse = (chunk: Buffer) => void;

/**
 * The listener by which Node's parser reads a connection that was just accepted; undefined where another listener
 * reads along, or Node reads in another way.
 */
export function parserOf(socket: Socket): Parse | undefined {
  const [parse, ...others] = socket.listeners('data') as Parse[];
  return others.length === 0 ? parse : undefined;
}

/** Those of this Node. */
export const nodeInternals: NodeInternals = { replyInProgress, parserOf };
