/** What a link asks the tool to show. */
export interface Link {
  readonly query: string;
  /** As it stands in the link, JSON or not; empty without any. */
  readonly variables: string;
  readonly operationName: string | undefined;
}

/**
 * Reads `?query=...&variables=...&operationName=...`, the parameters of GraphQL over HTTP; undefined without a query.
 * Nothing else is read: a link that somebody else wrote sets no headers.
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
