import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';

/** The requests whose bodies may take any time, as long as something moves. */
const streamed = new WeakSet<object>();

/** How long a client may go on sending what nobody wants any more once it has its reply, in milliseconds. */
const LINGER = 2_000;

/** Whether the body of a request is read as it comes. */
export function isStreamed(request: object): boolean {
  return streamed.has(request);
}

/**
 * Notes that a body is read as it comes. Behind the reply what is left of it is read for a moment, because a client that
 * is cut while it sends may lose the reply; then its connection is closed.
 */
export function streamBody(request: IncomingMessage, reply: NodeJS.EventEmitter, body: Readable): void {
  streamed.add(request);
  // Whoever reads the body gets its errors too.
  body.on('error', () => {});
  reply.once('close', () => {
    if (request.complete || request.socket.destroyed) return;
    body.resume();
    const timer = setTimeout(() => request.socket.destroy(), LINGER).unref();
    body.once('close', () => clearTimeout(timer)).once('end', () => clearTimeout(timer));
  });
}
