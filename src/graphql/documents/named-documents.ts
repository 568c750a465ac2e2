import { GraphQLError } from 'graphql';
import type { ErrorCode } from '../../core/error-codes.ts';
import type { RequestParams } from '../request-params.ts';
import type { Operations, Refused } from './operations.ts';
import type { PersistedQueries } from './persisted-queries.ts';

/** Where documents are found that a request names. */
export interface NamedDocumentsOptions {
  /** Undefined where automatic persisted queries are off. */
  readonly persisted: PersistedQueries | undefined;
  /** Finds the operations of a text. */
  readonly findText: (text: string) => Operations | Refused;
  /** Called for each request that is refused here. */
  readonly onRefused: () => void;
}

/** Apollo Client knows these two by code or message, urql by message. */
const NOT_FOUND = refused('PERSISTED_QUERY_NOT_FOUND', 'PersistedQueryNotFound');
const NOT_SUPPORTED = refused('PERSISTED_QUERY_NOT_SUPPORTED', 'PersistedQueryNotSupported');
const MISMATCH = refused('PERSISTED_QUERY_MISMATCH', 'The sha256Hash is not that of the query');
const UNKNOWN_ID = refused('DOCUMENT_NOT_FOUND', 'No document has this id');

/** Creates the look-up for requests that name their document, alone or beside its text. */
export function createFindNamed(
  options: NamedDocumentsOptions,
): (params: RequestParams) => Operations | Refused {
  const { persisted, findText, onRefused } = options;
  const refuse = (reason: Refused): Refused => {
    onRefused();
    return reason;
  };

  function byHash(hash: string): Operations | Refused {
    if (persisted === undefined) return refuse(NOT_SUPPORTED);
    const text = persisted.find(hash);
    return text === undefined ? refuse(NOT_FOUND) : findText(text);
  }

  function register(hash: string, text: string): Operations | Refused {
    if (persisted === undefined) return findText(text);
    if (!persisted.matches(hash, text)) return refuse(MISMATCH);
    const found = findText(text);
    if (!('errors' in found)) persisted.register(hash, text);
    return found;
  }

  return ({ query, hash }) => {
    if (hash === undefined) return refuse(UNKNOWN_ID);
    return query === undefined ? byHash(hash) : register(hash, query);
  };
}

/** The same object each time. No cache on the way may keep it: a moment later the document may be known. */
function refused(code: ErrorCode, message: string): Refused {
  return {
    errors: [new GraphQLError(message, { extensions: { code } })],
    headers: { 'cache-control': 'no-store' },
  };
}
