import type { FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import type { Metrics } from '../observability/metrics/metrics.ts';
import { DEFAULT_LIMITS, type DocumentLimits } from './document-limits.ts';
import { DEFAULT_RESULT_LIMITS, type ResultLimits } from './execution/result-budget.ts';
import { DEFAULT_WEB_SOCKET_LIMITS, type WebSocketLimits } from './websocket/limits.ts';

/** The options of the GraphQL door. */
export interface GraphqlOptions extends Partial<WebSocketLimits> {
  readonly schema: GraphQLSchema;
  /** Where the endpoint is; default /graphql. */
  readonly path?: string;
  /**
   * What resolvers get as their context; default undefined. Of a WebSocket, the request that opened it and the payload of
   * the client's `connection_init`, once for each operation.
   */
  readonly context?: (
    request: FastifyRequest,
    connectionParams?: Readonly<Record<string, unknown>>,
  ) => unknown;
  /** What a document may ask for and a result may hold; each has a default of its own. */
  readonly limits?: Partial<DocumentLimits & ResultLimits>;
  /** Largest body in bytes; default 100 KiB. A larger one is a 413. */
  readonly maxBodyBytes?: number;
  /** What documents that are remembered parsed, validated and planned may take, in bytes; default 32 MiB. */
  readonly maxCacheBytes?: number;
  /** Whether the schema may be asked for; default true. GraphiQL needs it. */
  readonly introspection?: boolean;
  /** Whether an error names what the client could have meant; default true. */
  readonly suggestions?: boolean;
  /** Where operations are counted and timed; default nowhere. */
  readonly metrics?: Metrics | undefined;
}

/** The options with their defaults. */
export function withDefaults(options: GraphqlOptions) {
  return {
    path: '/graphql',
    context: undefined,
    maxBodyBytes: 100 * 1024,
    maxCacheBytes: 32 * 1024 * 1024,
    introspection: true,
    suggestions: true,
    metrics: undefined,
    ...DEFAULT_WEB_SOCKET_LIMITS,
    ...options,
    limits: { ...DEFAULT_LIMITS, ...DEFAULT_RESULT_LIMITS, ...options.limits },
  };
}
