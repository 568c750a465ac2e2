import type { FastifyInstance } from 'fastify';
import type { Access } from './access/access.ts';

/** Where an endpoint can be found, for the discovery page. */
export interface EndpointLink {
  readonly name: string;
  /** Below the base path, starting with a slash; may hold `{placeholders}` when templated. */
  readonly path: string;
  readonly templated: boolean;
}

/** One management endpoint: its id, its links, and its routes below the base path. */
export interface ManagementEndpoint {
  readonly id: string;
  /** One plain line for the page that a browser gets. */
  readonly about: string;
  readonly links: readonly EndpointLink[];
  /** Its access unless one is configured; default unrestricted. */
  readonly ownAccess?: Access;
  /** Whether there is nothing to read, so that read-only access leaves nothing of it. */
  readonly writeOnly?: boolean;
  /** Adds its routes to the scope of the base path, only those that read when access is read-only. */
  addRoutes(scope: FastifyInstance, access: Exclude<Access, 'none'>): void;
}
