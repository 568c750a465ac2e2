/** The highest priority of a delivery. */
export const MAX_PRIORITY = 100;

/**
 * What a level of priority is worth, in milliseconds: a job is claimed as if it had been due so much earlier. So what has
 * waited for longer than that comes first again, and nothing waits for ever.
 */
export const PRIORITY_LEVEL = 86_400_000;
