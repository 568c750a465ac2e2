import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The reply that a connection waits for or is getting; Node has no public way to it. */
export function replyInProgress(socket: Socket): ServerResponse | undefined {
  return (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;
}
