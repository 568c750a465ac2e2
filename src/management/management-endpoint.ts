import type { FastifyInstance } from 'fastify';
import type { Access } from './access/access.ts';

/** One management endpoint: its id, its paths, and its routes below the base path. */
export interface ManagementEndpoint {
  readonly id: string;
  /** One plain line for the page that a browser gets. */
  readonly about: string;
  /** Below the base path, as the discovery page lists them: `/env`, `/env/{toMatch}`. */
  readonly paths: readonly string[];
  /** Its access unless one is configured; default unrestricted. */
  readonly ownAccess?: Access;
  /** Whether there is nothing to read, so that read-only access leaves nothing of it. */
  readonly writeOnly?: boolean;
  /** Adds its routes to the scope of the base path, only those that read when access is read-only. */
  addRoutes(scope: FastifyInstance, access: Exclude<Access, 'none'>): void;
}
