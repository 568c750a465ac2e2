import { chmod } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import { socketPathOf } from '../../core/unix-address.ts';
import { isSecure } from './connection-event.ts';
import type { ListenerAddress } from './listen-error.ts';
import { removeStaleSocket } from './stale-socket.ts';

/** Owner and group may connect, and the folder's permissions hold as well. */
const SOCKET_MODE = 0o660;

/** Has an instance listen on its port or Unix socket; fails as the system does. */
export async function listenOn(app: FastifyInstance, { door, host, port }: ListenerAddress): Promise<void> {
  const listenTextResolver = () => `${door} door listens`;
  const path = socketPathOf(port);
  if (path === undefined) {
    await app.listen({ host, port: Number(port), listenTextResolver });
    return;
  }
  await removeStaleSocket(path);
  await app.listen({ path, listenTextResolver });
  await chmod(path, SOCKET_MODE);
}

/** Where a listening instance is reached: a base URL, or `unix:` and a path. */
export function baseAddress({ server }: FastifyInstance, host: string): string {
  const address = server.address();
  if (typeof address === 'string') return `unix:${address}`;
  return `${isSecure(server) ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${address?.port ?? 0}`;
}
