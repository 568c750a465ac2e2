import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { chmod, lstat, rename, unlink } from 'node:fs/promises';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { socketPathOf } from '../../../src/core/addresses.ts';
import { ExpectedError } from '../../../src/core/errors.ts';

/** Owner and group may connect; the folder's permissions apply as well. */
const SOCKET_MODE = 0o660;

/** Makes an instance listen on its port or Unix socket. Rejects with the system's error. */
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

/** The address of a listening instance: a base URL, or `unix:` and a path. */
export function baseAddress({ server }: FastifyInstance, host: string): string {
  const address = server.address();
  if (typeof address === 'string') return `unix:${address}`;
  return `${isSecure(server) ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${address?.port ?? 0}`;
}

/** The address of a door. */
export interface ListenerAddress {
  /** The door's name, for logs and messages. */
  readonly door: string;
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number | string;
  /** The options that set the port, for the message if it is in use. */
  readonly portHint: string;
}

/** A door cannot listen; the start fails with this message. */
export class ListenError extends ExpectedError {
  override readonly name = 'ListenError';
  readonly code = 'CANNOT_LISTEN';

  constructor({ door, host, port, portHint }: ListenerAddress, cause: unknown) {
    const { code } = Object(cause) as { readonly code?: unknown };
    const path = socketPathOf(port);
    const why = (path === undefined ? reason : socketReason)(code, portHint);
    super(`The ${door} door cannot listen on ${path ?? `${host}:${port}`}: ${why}`, { cause });
  }
}

function reason(code: unknown, portHint: string): string {
  switch (code) {
    case 'EADDRINUSE':
      return `the port is in use. Stop the other program, or choose another port with ${portHint}.`;
    case 'EACCES':
      return `this user may not open the port. Choose one above 1023 with ${portHint}.`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return 'this machine does not have the address. Set --host or HOST to one of its addresses.';
    default:
      return `${String(code ?? 'unknown error')}.`;
  }
}

function socketReason(code: unknown, portHint: string): string {
  switch (code) {
    case 'EADDRINUSE':
      return `another program listens there. Stop it, or choose another path with ${portHint}.`;
    case 'ENOTSOCK':
      return `a file that is not a socket exists there. Remove it, or choose another path with ${portHint}.`;
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
    case 'ENOENT':
    case 'ENOTDIR':
      // Node reports EACCES if the folder does not exist.
      return 'its folder does not exist, or this user may not create a file in it.';
    default:
      return `${String(code ?? 'unknown error')}.`;
  }
}

/**
 * Starts further servers on the port of `main`, one for each other address of the host: "localhost" usually
 * has an IPv4 and an IPv6 address. Starts none for a Unix socket. Resolves to the servers that listen; an
 * address that is in use is skipped.
 */
export async function listenOnOtherAddresses(
  host: string,
  main: Server,
  create: () => Server,
): Promise<readonly Server[]> {
  const listening = main.address();
  if (listening === null || typeof listening === 'string') return [];
  const { address, port } = listening;
  const found = await lookup(host, { all: true }).catch(() => []);
  const others = found.filter((each) => each.address !== address);
  const servers = await Promise.all(
    others.map(async (other) => {
      const server = create();
      server.listen(port, other.address);
      return once(server, 'listening').then(
        () => server,
        () => undefined,
      );
    }),
  );
  return servers.filter((server) => server !== undefined);
}

/** The file at the path of a Unix socket is not a socket, so it is not removed. */
class NotASocketError extends Error {
  override readonly name = 'NotASocketError';
  readonly code = 'ENOTSOCK';
}

/**
 * Removes the file of a Unix socket on which no process listens, such as one left behind by a killed process.
 * Leaves a socket in use alone, so listening on it fails with EADDRINUSE. Rejects with NotASocketError for
 * any other file.
 */
async function removeStaleSocket(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined) return;
  if (!found.isSocket()) throw new NotASocketError(`${path} is not a socket`);
  if (await answers(path)) return;
  // Another process may have just created its own socket here, so check again after moving the file.
  const aside = `${path}.${process.pid}`;
  if (!(await moved(path, aside))) return;
  if (await answers(aside)) await rename(aside, path);
  else await unlink(aside);
}

/**
 * Whether a process accepts connections; true also if that cannot be determined, such as without permission.
 */
async function answers(path: string): Promise<boolean> {
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ECONNREFUSED';
  } finally {
    socket.destroy();
  }
}

/** Renames a file; false if it no longer exists. */
async function moved(from: string, to: string): Promise<boolean> {
  return rename(from, to).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false;
      throw error;
    },
  );
}

/** The server's event for connections that carry requests. */
export function connectionEvent(server: Server): 'connection' | 'secureConnection' {
  return 'setSecureContext' in server ? 'secureConnection' : 'connection';
}

/** Whether a server speaks TLS. */
export function isSecure(server: Server): boolean {
  return connectionEvent(server) === 'secureConnection';
}
