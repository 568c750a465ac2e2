import { parseWeightedList } from '../http/weighted-list.ts';

/** The two media types of a GraphQL result (GraphQL over HTTP, "Media Types"). */
export const RESULT_TYPES = {
  legacy: 'application/json',
  modern: 'application/graphql-response+json',
} as const;

export type ResultType = (typeof RESULT_TYPES)[keyof typeof RESULT_TYPES];

/**
 * Picks the media type of the result from an Accept header; undefined when neither is acceptable (406).
 * The modern one has to be named; where anything goes, clients older than it are served.
 */
export function negotiateResultType(accept: string | undefined): ResultType | undefined {
  if (accept === undefined || accept === '*/*') return RESULT_TYPES.legacy;
  const weights = new Map<string, number>();
  for (const { name, weight } of parseWeightedList(accept)) {
    weights.set(name, Math.max(weight, weights.get(name) ?? 0));
  }
  const weightOf = (type: ResultType) =>
    weights.get(type) ?? weights.get('application/*') ?? weights.get('*/*') ?? 0;
  const modern = weightOf(RESULT_TYPES.modern);
  const legacy = weightOf(RESULT_TYPES.legacy);
  if (modern > legacy || (modern > 0 && modern === legacy && weights.has(RESULT_TYPES.modern))) {
    return RESULT_TYPES.modern;
  }
  return legacy > 0 ? RESULT_TYPES.legacy : undefined;
}
