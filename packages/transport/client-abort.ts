import type { Socket } from 'node:net';

/**
 * How long a request continues after its client has closed its half of the connection, in milliseconds. Most
 * such clients are gone, but the system keeps acknowledging data until the peer rejects it, so nothing else
 * reveals that.
 */
const GRACE = 1_000;

/**
 * Listeners for the end of a client's half, by socket: one `end` handler per socket, however many requests it
 * has.
 */
const waiting = new WeakMap<Socket, Set<() => void>>();

/**
 * Calls a listener once a client has left: when `onClose` fires, or `GRACE` after the client closes its half.
 * Returns a function that removes the listener.
 */
export function onClientAbort(
  socket: Socket,
  onClose: (listener: () => void) => void,
  listener: () => void,
): () => void {
  const listeners = listenersOf(socket);
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  const cancel = () => {
    isOver = true;
    clearTimeout(timer);
    listeners.delete(onEnd);
  };
  const fire = () => {
    if (isOver) return;
    cancel();
    listener();
  };
  const onEnd = () => {
    timer = setTimeout(fire, GRACE);
  };
  if (socket.readableEnded) onEnd();
  else listeners.add(onEnd);
  onClose(fire);
  return cancel;
}

function listenersOf(socket: Socket): Set<() => void> {
  const known = waiting.get(socket);
  if (known !== undefined) return known;
  const listeners = new Set<() => void>();
  waiting.set(socket, listeners);
  socket.once('end', () => {
    for (const listener of listeners) listener();
  });
  return listeners;
}
