/** The operation in a link's query string. */
export interface Link {
  readonly query: string;
  /** As written in the link, valid JSON or not; empty if absent. */
  readonly variables: string;
  readonly operationName: string | undefined;
}

/**
 * Reads `?query=...&variables=...&operationName=...`, the parameters of GraphQL over HTTP; undefined without
 * a query. All other parameters are ignored, so a link cannot set headers.
 */
export function readLink(search: string): Link | undefined {
  const parameters = new URLSearchParams(search);
  const query = parameters.get('query') ?? '';
  if (query.trim() === '') return undefined;
  return {
    query,
    variables: parameters.get('variables') ?? '',
    operationName: parameters.get('operationName') || undefined,
  };
}
