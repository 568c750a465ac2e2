/** The built-in health checks; which of them run depends on the open doors. */
export const builtInChecks = ['db', 'writer', 'diskSpace', 'eventLoop', 'webhookBacklog'] as const;

/** The states of the process itself; only groups may contain them. */
export const processStates = ['livenessState', 'readinessState'] as const;

/** The groups that exist without configuration. */
export const builtInGroups = ['liveness', 'readiness'] as const;

/** Who sees the details of a health status. Without configured users, everyone is authorised. */
export const showDetailsChoices = ['never', 'when-authorized', 'always'] as const;

/** One of these choices. */
export type ShowDetails = (typeof showDetailsChoices)[number];

/** The management endpoints that are exposed by default (CONTRACT.md#management-endpoints). */
export const builtInEndpoints = ['health', 'info', 'metrics', 'env'] as const;

/**
 * The id of the console, a page for people. It is exposed by default too, and refuses clients that may not
 * see it.
 */
export const consoleEndpoint = 'console';

/** The management endpoints that only an explicit name or `*` exposes. */
export const optInEndpoints = [
  'prometheus',
  'configprops',
  'mappings',
  'loggers',
  'httpexchanges',
  'auditevents',
  'deliveries',
  'webhookendpoints',
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

/** The canonical form of an endpoint id, which ignores case, "-" and ".". */
export function comparableEndpointId(id: string): string {
  return id.replace(/[.-]/g, '').toLowerCase();
}
