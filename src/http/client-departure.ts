import type { Socket } from 'node:net';

/**
 * How long a client that has closed its half of the connection may still wait for its reply, in milliseconds. Nearly all
 * that close it are gone, and nothing else tells: the system acknowledges what is sent to them until it is refused.
 */
const GRACE = 1_000;

/** What waits for the end of what a client sends: one listener at each socket, however many requests it has. */
const waiting = new WeakMap<Socket, Set<() => void>>();

/**
 * Calls a listener once a client has left: when `onClose` tells that its reply is sent or its connection is closed, or
 * some time after it has closed its half. Returns what takes that back.
 */
export function onDeparture(
  socket: Socket,
  onClose: (listener: () => void) => void,
  listener: () => void,
): () => void {
  const listeners = listenersOf(socket);
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  const stay = () => {
    isOver = true;
    clearTimeout(timer);
    listeners.delete(onEnd);
  };
  const leave = () => {
    if (isOver) return;
    stay();
    listener();
  };
  const onEnd = () => {
    timer = setTimeout(leave, GRACE);
  };
  if (socket.readableEnded) onEnd();
  else listeners.add(onEnd);
  onClose(leave);
  return stay;
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
