import type { FastifyInstance } from 'fastify';
import type { Access } from './masking.ts';
import type { Routes } from './operations.ts';

/** One management endpoint: its id, and what it answers below the base path. */
export interface ManagementEndpoint {
  readonly id: string;
  /** One plain line for the page that a browser gets. */
  readonly about: string;
  /** Its access unless one is configured; default unrestricted. */
  readonly ownAccess?: Access;
  /** Called when it is exposed, with the scope of the base path. */
  routes(scope: FastifyInstance): Routes;
}
