/** The health checks that Portico brings along; which of them there are depends on the doors that are open. */
export const builtInChecks = ['db', 'writer', 'diskSpace', 'eventLoop', 'webhookBacklog'] as const;

/** The states of the process itself. They are members of groups only. */
export const processStates = ['livenessState', 'readinessState'] as const;

/** The groups that are there without being configured. */
export const builtInGroups = ['liveness', 'readiness'] as const;

/** Who sees what a health status is made of. Where no users are configured everybody is authorised. */
export const showDetailsChoices = ['never', 'when-authorized', 'always'] as const;

export type ShowDetails = (typeof showDetailsChoices)[number];
