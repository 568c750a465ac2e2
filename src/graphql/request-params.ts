import { parseJsonBody, parseJsonText } from '../http/body/json-body.ts';
import type { Exchange } from '../http/endpoint.ts';
import { HttpProblem } from '../http/problem.ts';

/** What a GraphQL request asks for (GraphQL over HTTP, "Request Parameters"). */
export interface RequestParams {
  readonly query: string;
  readonly operationName: string | undefined;
  readonly variables: Readonly<Record<string, unknown>> | undefined;
}

/** The parameters of a request of either method. Throws an HttpProblem with status 400. */
export function paramsOf({ method, query, body }: Exchange): RequestParams {
  if (method !== 'POST') return paramsFromUrl(query);
  return paramsFromBody(body.length === 0 ? undefined : parseJsonBody(body));
}

/** Reads the parameters from a parsed JSON body. Throws an HttpProblem with status 400. */
export function paramsFromBody(body: unknown): RequestParams {
  if (body === undefined) throw malformed('The body is missing');
  if (!isMap(body)) throw malformed('The body must be a JSON object');
  return checked(body);
}

/** Reads the parameters from a parsed query string. Throws an HttpProblem with status 400. */
export function paramsFromUrl(query: Readonly<Record<string, unknown>>): RequestParams {
  return checked({ ...query, variables: parsed(query.variables), extensions: parsed(query.extensions) });
}

function checked({
  query,
  operationName,
  variables,
  extensions,
}: Readonly<Record<string, unknown>>): RequestParams {
  if (query === undefined || query === null) throw malformed('The parameter "query" is missing');
  if (typeof query !== 'string') throw malformed('The parameter "query" must be a string');
  if (operationName != null && typeof operationName !== 'string') {
    throw malformed('The parameter "operationName" must be a string');
  }
  if (variables != null && !isMap(variables)) throw malformed('The parameter "variables" must be a map');
  if (extensions != null && !isMap(extensions)) throw malformed('The parameter "extensions" must be a map');
  return { query, operationName: operationName ?? undefined, variables: variables ?? undefined };
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
