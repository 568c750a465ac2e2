/** The management endpoints that are always there (contract 4.3). */
export const builtInEndpoints = ['health', 'info', 'metrics', 'env'] as const;

/** What the id of a management endpoint looks like. */
export const endpointIdPattern = /^[a-z][a-zA-Z0-9.-]*$/;

/** Ids that agree in this form name the same endpoint: case, "-" and "." do not count. */
export function comparableEndpointId(id: string): string {
  return id.replace(/[.-]/g, '').toLowerCase();
}
