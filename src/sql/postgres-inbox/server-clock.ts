import { SERVER_NOW } from '../stores/sql.ts';

/** The time given by a parameter, or the server's time if it is null. */
export const timeOr = (parameter: string) => `coalesce(${parameter}::bigint, ${SERVER_NOW})`;

/** A time read from a process's clock, but not later than the server's time. */
export const notAhead = (time: string) => `least(${time}, ${SERVER_NOW})`;
