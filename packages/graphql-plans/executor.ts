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
import type { Operation, OperationMeters } from './operation.ts';
import type { RequestParams } from './request-params.ts';
import type { ResultLimits } from './results.ts';

export type { Refused } from './documents.ts';

/** What operations are found and run with. */
interface ExecutorOptions {
  readonly schema: GraphQLSchema;
  readonly limits: DocumentLimits & ResultLimits;
  /** What remembered documents and their plans may take, in bytes. */
  readonly maxCacheBytes: number;
  readonly introspection: boolean;
  /** Whether an error may name what the client could have meant. */
  readonly suggestions: boolean;
  /** Whether clients may register documents by their hash; default true. */
  readonly persistedQueries?: boolean;
  /** Documents that are read at the start and never forgotten; default none. */
  readonly documents?: DocumentSource | undefined;
  /** Whether no others run than those of `documents`; default false. */
  readonly onlyDocuments?: boolean;
  readonly meters?: OperationMeters | undefined;
}

/** Finds the operation that a request means: one look-up by the document's text, then its name. */
export type FindOperation = (params: RequestParams) => Operation | Refused;

/** The part of the cache that registered texts have. */
const PERSISTED_SHARE = 1 / 8;
/** How many results of the largest size are made at once. */
const MAX_LARGE_RESULTS = 2;

const UNDETERMINED: Refused = { errors: [new GraphQLError('The operation to run cannot be determined')] };

/** Creates the look-up. Throws DocumentsError. */
export function createFindOperation(options: ExecutorOptions): FindOperation {
  const { schema, limits, introspection, suggestions, meters, maxCacheBytes } = options;
  const { persistedQueries = true, onlyDocuments = false } = options;
  const onLookup = (result: 'hit' | 'refused') => meters?.lookup(result);
  const turns = new CooperativeScheduler(MAX_LARGE_RESULTS * limits.maxResultBytes);
  const operations = { schema, suggestions, limits, turns, meter: meters?.operation };
  const persistedBytes = persistedQueries ? PERSISTED_SHARE * maxCacheBytes : 0;
  const maxBytes = maxCacheBytes - persistedBytes;
  const cache = new DocumentCache({ limits, introspection, maxBytes, meters, operations });
  const trusted =
    options.documents === undefined
      ? undefined
      : new TrustedDocuments(readDocuments(options.documents), operations);
  if (onlyDocuments && trusted === undefined) {
    throw new DocumentsError([
      'onlyDocuments is set and there are none; set documents (GRAPHQL_DOCUMENTS) too',
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
