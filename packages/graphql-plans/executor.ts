import { GraphQLError, type GraphQLSchema } from 'graphql';
import { CooperativeScheduler } from '../../src/core/scheduler.ts';
import {
  createFindNamed,
  DocumentCache,
  type DocumentSource,
  DocumentsError,
  type Operations,
  PersistedQueries,
  type Refused,
  readDocuments,
  TrustedDocuments,
  UNTRUSTED,
} from './documents.ts';
import type { DocumentLimits } from './limits.ts';
import type { Operation, OperationMeters, OperationOptions } from './operation.ts';
import type { RequestParams } from './request-params.ts';
import type { ResultLimits } from './results.ts';

export type { Refused } from './documents.ts';

/** The options for finding and running operations. */
interface ExecutorOptions {
  readonly schema: GraphQLSchema;
  readonly limits: DocumentLimits & ResultLimits;
  /** Maximum memory of cached documents and their plans, in bytes. */
  readonly maxCacheBytes: number;
  readonly introspection: boolean;
  /** Whether errors may suggest names that the client could have meant. */
  readonly suggestions: boolean;
  /** Whether clients may register documents by their hash; default true. */
  readonly persistedQueries?: boolean;
  /** Trusted documents, read at the start and kept forever; default none. */
  readonly documents?: DocumentSource | undefined;
  /** Whether only `documents` may run; default false. */
  readonly onlyDocuments?: boolean;
  readonly meters?: OperationMeters | undefined;
  /** Calls the execution of each operation, and of each event of a subscription. */
  readonly around?: OperationOptions['around'];
}

/** Finds the operation of a request by the document's text, id or hash, and its operation name. */
export type FindOperation = (params: RequestParams) => Operation | Refused;

/** The share of the cache for registered texts. */
const PERSISTED_SHARE = 1 / 8;
/** How many results of the maximum size may be produced at the same time. */
const MAX_LARGE_RESULTS = 2;

const UNDETERMINED: Refused = { errors: [new GraphQLError('The operation to run cannot be determined')] };

/** Creates the function that finds operations. Throws DocumentsError. */
export function createFindOperation(options: ExecutorOptions): FindOperation {
  const { schema, limits, introspection, suggestions, meters, maxCacheBytes } = options;
  const { persistedQueries = true, onlyDocuments = false } = options;
  const onLookup = (result: 'hit' | 'refused') => meters?.lookup(result);
  const turns = new CooperativeScheduler(MAX_LARGE_RESULTS * limits.maxResultBytes);
  const { around } = options;
  const operations = { schema, suggestions, limits, turns, around, meter: meters?.operation };
  const persistedBytes = persistedQueries ? PERSISTED_SHARE * maxCacheBytes : 0;
  const maxBytes = maxCacheBytes - persistedBytes;
  const cache = new DocumentCache({ limits, introspection, maxBytes, meters, operations });
  const trusted =
    options.documents === undefined
      ? undefined
      : new TrustedDocuments(readDocuments(options.documents), operations);
  if (onlyDocuments && trusted === undefined) {
    throw new DocumentsError([
      'onlyDocuments is set, but there are no documents; also set documents (GRAPHQL_DOCUMENTS)',
    ]);
  }

  function findTrusted(text: string): Operations | Refused {
    const document = trusted?.withText(text);
    if (document === undefined && !onlyDocuments) return cache.find(text);
    onLookup(document === undefined ? 'refused' : 'hit');
    return document?.operations ?? UNTRUSTED;
  }
  const findText = trusted === undefined ? (text: string) => cache.find(text) : findTrusted;
  const findNamed = createFindNamed({
    trusted,
    persisted: persistedQueries ? new PersistedQueries(persistedBytes) : undefined,
    findText,
    onlyTrusted: onlyDocuments,
    onLookup,
  });

  return (params) => {
    const { query } = params;
    const found = query === undefined || params.hash !== undefined ? findNamed(params) : findText(query);
    if ('errors' in found) return found;
    return found.get(params.operationName) ?? UNDETERMINED;
  };
}
