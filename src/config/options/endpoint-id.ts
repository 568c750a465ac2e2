/** The management endpoints that are exposed unless told otherwise (contract 4.3). */
export const builtInEndpoints = ['health', 'info', 'metrics', 'env'] as const;

/** The management endpoints that are exposed only when they are named, or all are. */
export const optInEndpoints = [
  'prometheus',
  'configprops',
  'mappings',
  'loggers',
  'httpexchanges',
  'deliveries',
  'eventloop',
  'threaddump',
  'heapdump',
  'cpuprofile',
  'shutdown',
] as const;

/** The ids that an endpoint of the user's own cannot have. */
export const takenEndpoints: readonly string[] = [...builtInEndpoints, ...optInEndpoints];

/** What the id of a management endpoint looks like. */
export const endpointIdPattern = /^[a-z][a-zA-Z0-9.-]*$/;

/** Ids that agree in this form name the same endpoint: case, "-" and "." do not count. */
export function comparableEndpointId(id: string): string {
  return id.replace(/[.-]/g, '').toLowerCase();
}
