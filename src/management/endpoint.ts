import type { FastifyInstance } from 'fastify';

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
  readonly links: readonly EndpointLink[];
  /** Adds its routes to the scope of the base path, which guards them and answers their errors. */
  addRoutes(scope: FastifyInstance): void;
}
