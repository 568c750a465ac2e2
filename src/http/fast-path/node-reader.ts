import type { Socket } from 'node:net';

/** Node's own listeners for what a connection brings. */
export interface NodeReader {
  /** Gives bytes to Node's parser. */
  readonly parse: (chunk: Buffer) => void;
  /** Tells Node that the client has closed its half. */
  readonly end: () => void;
}

type Listener = (...args: readonly unknown[]) => void;

/**
 * How Node reads a connection that was just accepted. It does not document that: undefined where another listener reads
 * along, or where Node reads in another way than the one known here.
 */
export function nodeReader(socket: Socket): NodeReader | undefined {
  const [parse, ...otherData] = socket.listeners('data') as Listener[];
  // The first is that of the socket itself.
  const [own, end, ...otherEnds] = socket.listeners('end') as Listener[];
  if (parse === undefined || otherData.length > 0) return undefined;
  if (own?.name !== 'onReadableStreamEnd' || end === undefined || otherEnds.length > 0) return undefined;
  return { parse: parse as NodeReader['parse'], end: end as NodeReader['end'] };
}
