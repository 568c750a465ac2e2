import { HttpProblem, parseJsonBody, parseJsonText, type RequestContext } from '@portico/transport';

/** The parameters of a GraphQL request (GraphQL over HTTP, "Request Parameters"). */
export interface RequestParams {
  /** The document's text; undefined if the request identifies its document by id or hash. */
  readonly query: string | undefined;
  readonly operationName: string | undefined;
  readonly variables: Readonly<Record<string, unknown>> | undefined;
  /** The id of a trusted document; never set together with `query`. */
  readonly documentId?: string;
  /** The document's SHA-256 in hex, with or without its text (Apollo's `extensions.persistedQuery`). */
  readonly hash?: string;
}

/** Several operations in one request, not parsed yet. */
export type Batch = unknown[];

/** The parameters of a GET or POST request, or a batch. Throws HttpProblem with status 400. */
export function paramsOf({ method, query, body }: RequestContext): RequestParams | Batch {
  if (method !== 'POST') return paramsFromUrl(query);
  const parsed = body.length === 0 ? undefined : parseJsonBody(body);
  return Array.isArray(parsed) ? parsed : paramsFromBody(parsed);
}

/** Reads the parameters from a parsed JSON body. Throws HttpProblem with status 400. */
export function paramsFromBody(body: unknown): RequestParams {
  if (body === undefined) throw malformed('The body is missing');
  if (!isMap(body)) throw malformed('The body must be a JSON object');
  return checked(body);
}

/** Reads the parameters from a parsed query string. Throws HttpProblem with status 400. */
export function paramsFromUrl(query: Readonly<Record<string, unknown>>): RequestParams {
  return checked({ ...query, variables: parsed(query.variables), extensions: parsed(query.extensions) });
}

function checked(given: Readonly<Record<string, unknown>>): RequestParams {
  const { query, operationName, variables, extensions } = given;
  if (query != null && typeof query !== 'string') throw malformed('The parameter "query" must be a string');
  if (operationName != null && typeof operationName !== 'string') {
    throw malformed('The parameter "operationName" must be a string');
  }
  if (variables != null && !isMap(variables)) throw malformed('The parameter "variables" must be a map');
  if (extensions != null && !isMap(extensions)) throw malformed('The parameter "extensions" must be a map');
  const params = {
    query: query ?? undefined,
    operationName: operationName ?? undefined,
    variables: variables ?? undefined,
  };
  // If there is a text, it runs and any id is ignored.
  if (params.query === undefined) return { ...params, ...nameOf(given) };
  const hash = extensions == null ? undefined : hashOf(extensions);
  return hash === undefined ? params : { ...params, hash };
}

/** The id or hash by which a request without a text identifies its document. */
function nameOf({ documentId, doc_id: relayId, extensions }: Readonly<Record<string, unknown>>) {
  const id = documentId ?? relayId;
  if (id != null) {
    const name = documentId == null ? 'doc_id' : 'documentId';
    if (typeof id !== 'string') throw malformed(`The parameter "${name}" must be a string`);
    return { documentId: id };
  }
  const hash = isMap(extensions) ? hashOf(extensions) : undefined;
  if (hash === undefined) throw malformed('The parameter "query" is missing');
  return { hash };
}

/** The hash of an automatic persisted query (Apollo's protocol). */
function hashOf({ persistedQuery }: Readonly<Record<string, unknown>>): string | undefined {
  if (persistedQuery == null) return undefined;
  const { version, sha256Hash } = isMap(persistedQuery) ? persistedQuery : {};
  if (version === 1 && typeof sha256Hash === 'string') return sha256Hash;
  throw malformed('The extension "persistedQuery" must have the version 1 and a sha256Hash');
}

function parsed(json: unknown): unknown {
  return typeof json === 'string' && json !== '' ? parseJsonText(json) : json;
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function malformed(message: string): HttpProblem {
  return new HttpProblem(400, 'MALFORMED_REQUEST', message);
}
