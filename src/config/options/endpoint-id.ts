/** The built-in health checks; which of them run depends on the open doors. */
export const builtInChecks = ['db', 'writer', 'diskSpace', 'eventLoop', 'webhookBacklog'] as const;

/** The states of the process itself, members of groups only. */
export const processStates = ['livenessState', 'readinessState'] as const;

/** The groups that exist without configuration. */
export const builtInGroups = ['liveness', 'readiness'] as const;

/** Who sees the details of a health status. Without configured users everybody is authorised. */
export const showDetailsChoices = ['never', 'when-authorized', 'always'] as const;

/** A choice of them. */
export type ShowDetails = (typeof showDetailsChoices)[number];

/** The management endpoints that are exposed by default (CONTRACT.md#management-endpoints). */
export const builtInEndpoints = ['health', 'info', 'metrics', 'env'] as const;

/** The id of the console: a page for people, which is served with those above and answers only who may see it. */
export const consoleEndpoint = 'console';

/** The management endpoints that are exposed only by name or by `*`. */
export const optInEndpoints = [
  'prometheus',
  'configprops',
  'mappings',
  'loggers',
  'httpexchanges',
  'auditevents',
  'deliveries',
  'history',
  'logtail',
  'requests',
  'eventloop',
  'threaddump',
  'heapdump',
  'cpuprofile',
  'openapi',
  'docs',
  'shutdown',
] as const;

/** The ids that custom endpoints cannot have. */
export const takenEndpoints: readonly string[] = [...builtInEndpoints, consoleEndpoint, ...optInEndpoints];

/** The syntax of an endpoint id. */
export const endpointIdPattern = /^[a-z][a-zA-Z0-9.-]*$/;

/** The canonical form of an endpoint id: case, "-" and "." do not count. */
export function comparableEndpointId(id: string): string {
  return id.replace(/[.-]/g, '').toLowerCase();
}
