/** How many users one commit of an import stores: a few milliseconds in which SQLite's only writer is held. */
export const IMPORT_BATCH = 2_000;

/** What an import in one transaction takes at most: it is held in memory, and SQLite's only writer by its commit. */
export const MAX_TRANSACTION = { users: 50_000, bytes: 16 * 1024 * 1024 } as const;

/** Time for which positions are kept, in milliseconds: 30 days. */
export const IMPORT_KEPT = 30 * 24 * 3_600_000;
