/** The four interfaces, in the contract's order (contract 1). */
export const doors = ['graphql', 'rest', 'management', 'webhook'] as const;

/** The name of a door. */
export type Door = (typeof doors)[number];
