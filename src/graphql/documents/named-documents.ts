import { GraphQLError } from 'graphql';
import type { ErrorCode } from '../../core/error-codes.ts';
import type { RequestParams } from '../request-params.ts';
import type { Operations, Refused } from './operations.ts';
import type { PersistedQueries } from './persisted-queries.ts';
import type { TrustedDocuments } from './trusted-documents.ts';

/** Where documents are found that a request names. */
export interface NamedDocumentsOptions {
  /** Undefined where there are none. */
  readonly trusted: TrustedDocuments | undefined;
  /** Undefined where automatic persisted queries are off. */
  readonly persisted: PersistedQueries | undefined;
  /** Finds the operations of a text. */
  readonly findText: (text: string) => Operations | Refused;
  /** Whether no others run than trusted ones. */
  readonly onlyTrusted: boolean;
  /** Called for each request that is answered or refused here. */
  readonly onLookup: (result: 'hit' | 'refused') => void;
}

/** Apollo Client knows these two by code or message, urql by message. */
const NOT_FOUND = refused('PERSISTED_QUERY_NOT_FOUND', 'PersistedQueryNotFound');
const NOT_SUPPORTED = refused('PERSISTED_QUERY_NOT_SUPPORTED', 'PersistedQueryNotSupported');
const MISMATCH = refused('PERSISTED_QUERY_MISMATCH', 'The sha256Hash is not that of the query');
const UNKNOWN_ID = refused('DOCUMENT_NOT_FOUND', 'No trusted document has this id');

/** Answers a text that is not among the trusted ones, where only those run. */
export const UNTRUSTED = refused('DOCUMENT_REQUIRED', 'Only trusted documents run here; name one by its id');

/** Creates the look-up for requests that name their document, alone or beside its text. */
export function createFindNamed(
  options: NamedDocumentsOptions,
): (params: RequestParams) => Operations | Refused {
  const { trusted, persisted, findText, onlyTrusted, onLookup } = options;
  const refuse = (reason: Refused): Refused => {
    onLookup('refused');
    return reason;
  };

  /** The trusted document of an id or hash, if there is one. */
  function trustedBy(id: string, text?: string): Operations | Refused | undefined {
    const document = trusted?.find(id);
    if (document === undefined) return undefined;
    if (text !== undefined && text !== document.text) return refuse(MISMATCH);
    onLookup('hit');
    return document.operations;
  }

  function byHash(hash: string): Operations | Refused {
    // The query itself would be refused too.
    if (onlyTrusted) return refuse(UNKNOWN_ID);
    if (persisted === undefined) return refuse(NOT_SUPPORTED);
    const text = persisted.find(hash);
    return text === undefined ? refuse(NOT_FOUND) : findText(text);
  }

  function register(hash: string, text: string): Operations | Refused {
    if (onlyTrusted || persisted === undefined) return findText(text);
    if (!persisted.matches(hash, text)) return refuse(MISMATCH);
    const found = findText(text);
    if (!('errors' in found)) persisted.register(hash, text);
    return found;
  }

  return ({ query, documentId, hash }) => {
    if (documentId !== undefined) return trustedBy(documentId) ?? refuse(UNKNOWN_ID);
    // Every other request that comes here has a hash.
    const given = hash ?? '';
    return trustedBy(given, query) ?? (query === undefined ? byHash(given) : register(given, query));
  };
}

/** The same object each time. No cache on the way may keep it: a moment later the document may be known. */
function refused(code: ErrorCode, message: string): Refused {
  return {
    errors: [new GraphQLError(message, { extensions: { code } })],
    headers: { 'cache-control': 'no-store' },
  };
}
