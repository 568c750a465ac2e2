/** The time of the server, in milliseconds since the epoch: the clocks of processes differ. */
export const SERVER_NOW = '(extract(epoch FROM statement_timestamp()) * 1000)::bigint';

/** The time that a parameter gives, or that of the server where it is null. */
export const timeOr = (parameter: string) => `coalesce(${parameter}::bigint, ${SERVER_NOW})`;

/** A time that a process has read from its own clock, unless the server has not come to it yet. */
export const notAhead = (time: string) => `least(${time}, ${SERVER_NOW})`;
