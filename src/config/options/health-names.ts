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
