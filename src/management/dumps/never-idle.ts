import { Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';

/** Lets a request wait without anything moving on its connection, which would otherwise be cut; close it after the reply. */
export function neverIdle({ raw }: FastifyRequest): void {
  // An injected request has no real socket.
  if (raw.socket instanceof Socket) raw.socket.setTimeout(0);
}
