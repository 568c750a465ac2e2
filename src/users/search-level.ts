/** What users are indexed for besides their id: nothing, name and email (`keys`), or any part of them too (`text`). */
export const SEARCH_LEVELS = ['none', 'keys', 'text'] as const;
export type SearchLevel = (typeof SEARCH_LEVELS)[number];
