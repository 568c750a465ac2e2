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
export interface Endpoint {
  readonly id: string;
  /** One plain line for the page that a browser gets. */
  readonly about: string;
  readonly links: readonly EndpointLink[];
  /** What is allowed when nobody configured it; unrestricted when absent. */
  readonly ownAccess?: Access;
  /** Whether there is nothing to read: then read-only leaves nothing of it. */
  readonly writeOnly?: boolean;
  /**
   * Adds its routes to the scope of the base path, which guards them and answers their errors. With
   * read-only access it adds those that read; with none it is not called.
   */
  addRoutes(scope: FastifyInstance, access: Exclude<Access, 'none'>): void;
}
