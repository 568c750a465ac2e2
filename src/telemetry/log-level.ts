/** Log levels, from nothing to everything. */
export const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;

/** The name of a level, in lower case. */
export type LogLevel = (typeof LOG_LEVELS)[number];
