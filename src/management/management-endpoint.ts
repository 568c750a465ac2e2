import type { FastifyInstance } from 'fastify';
import type { Access } from './masking.ts';
import type { Routes } from './operations.ts';

/** A management endpoint: its id, and its routes below the base path. */
export interface ManagementEndpoint {
  readonly id: string;
  /** A line of plain text for the page that browsers get. */
  readonly about: string;
  /** Access unless the configuration sets one. Default: unrestricted. */
  readonly ownAccess?: Access;
  /** Called if the endpoint is exposed, with the scope of the base path. */
  routes(scope: FastifyInstance): Routes;
}
