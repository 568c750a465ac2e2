import type { FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import type { ApiOptions } from '../config/api/open-gate.ts';
import type { ContextDetails } from '../config/schema/graphql-code.ts';
import type { ApiGate } from '../http/access/api-gate.ts';
import type { CorsOptions } from '../http/access/cors.ts';
import type { Metrics } from '../observability/metrics/metrics.ts';
import { DEFAULT_LIMITS, type DocumentLimits } from './document-limits.ts';
import type { DocumentSource } from './documents/read-documents.ts';
import { DEFAULT_RESULT_LIMITS, type ResultLimits } from './execution/result-budget.ts';
import { DEFAULT_WEB_SOCKET_LIMITS, type WebSocketLimits } from './websocket/limits.ts';

/** The options of the GraphQL door. */
export interface GraphqlOptions extends Partial<WebSocketLimits> {
  readonly schema: GraphQLSchema;
  /** Where the endpoint is; default /graphql. */
  readonly path?: string;
  /**
   * Makes what resolvers get as their context, at once or later; default none. The signal in `details` is made when it is
   * read. Of a WebSocket it gets the request that opened it, once for each operation.
   */
  readonly context?: ((request: FastifyRequest, details: ContextDetails) => unknown) | undefined;
  /** What they get without `context`, the same for all requests; default undefined. */
  readonly contextValue?: unknown;
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
  /** Whether clients may register documents by their hash (Apollo's automatic persisted queries); default true. */
  readonly persistedQueries?: boolean;
  /**
   * Documents of your own clients: the path of a JSON file or a folder of `<id>.graphql` files, or an object with the
   * texts by their ids. They are validated at the start, free of the limits on documents, and never forgotten.
   */
  readonly documents?: DocumentSource | undefined;
  /** Whether no others run than `documents`; default false. */
  readonly onlyDocuments?: boolean;
  /** Maximum operations of a batch, a JSON array of requests; default 0, which refuses batches. */
  readonly maxBatch?: number;
  /** Where operations are counted and timed; default nowhere. */
  readonly metrics?: Metrics | undefined;
  /** Which operations need credentials, and which there are; default none. */
  readonly api?: ApiOptions | ApiGate | undefined;
  /** Which pages of other origins may use the door; default none. */
  readonly cors?: CorsOptions | undefined;
}

/** The options with their defaults. */
export function withDefaults(options: GraphqlOptions) {
  return {
    path: '/graphql',
    context: undefined,
    contextValue: undefined,
    maxBodyBytes: 100 * 1024,
    maxCacheBytes: 32 * 1024 * 1024,
    introspection: true,
    suggestions: true,
    persistedQueries: true,
    documents: undefined,
    onlyDocuments: false,
    maxBatch: 0,
    metrics: undefined,
    api: undefined,
    cors: undefined,
    ...DEFAULT_WEB_SOCKET_LIMITS,
    ...options,
    limits: { ...DEFAULT_LIMITS, ...DEFAULT_RESULT_LIMITS, ...options.limits },
  };
}
