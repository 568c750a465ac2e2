/** The parts of the info endpoint. */
export const infoParts = ['build', 'git', 'node', 'os', 'process'] as const;

/** One of them. */
export type InfoPart = (typeof infoParts)[number];
