import { parseAccept } from '../http/accept.ts';

/** The two media types of a GraphQL result (GraphQL over HTTP, "Media Types"). */
export const RESULT_TYPES = {
  legacy: 'application/json',
  modern: 'application/graphql-response+json',
} as const;

/** What a subscription is sent as. */
export const EVENT_STREAM = 'text/event-stream';

/** One of the two. */
export type ResultType = (typeof RESULT_TYPES)[keyof typeof RESULT_TYPES];

/**
 * Picks the media type of the result from an Accept header; undefined when neither is acceptable (406).
 * The modern one has to be named; where anything goes, clients older than it are served.
 */
export function negotiateResultType(accept: string | undefined): ResultType | undefined {
  if (accept === undefined || accept === '*/*') return RESULT_TYPES.legacy;
  const wanted = parseAccept(accept);
  const modern = wanted(RESULT_TYPES.modern);
  const legacy = wanted(RESULT_TYPES.legacy).weight;
  const named = modern.specificity === 2;
  if (modern.weight > legacy || (modern.weight > 0 && modern.weight === legacy && named)) {
    return RESULT_TYPES.modern;
  }
  return legacy > 0 ? RESULT_TYPES.legacy : undefined;
}
