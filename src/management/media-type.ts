import { parseAccept } from '../http/accept.ts';

/** The media types of this door's JSON, the preferred one first. */
export const MEDIA_TYPES = [
  'application/vnd.spring-boot.actuator.v3+json',
  'application/vnd.spring-boot.actuator.v2+json',
  'application/json',
] as const;

/** One of them. */
export type MediaType = (typeof MEDIA_TYPES)[number];

const DEFAULT: MediaType = MEDIA_TYPES[0];

/**
 * The media type for an Accept header: the one with the highest weight, among equals one that is named rather than
 * covered by `*`, then the first of ours. A header that accepts none of them gets the default.
 */
export function mediaTypeFor(accept: string | undefined): MediaType {
  if (accept === undefined || accept === '*/*') return DEFAULT;
  const wanted = parseAccept(accept);
  let best = DEFAULT;
  let bestRank = 0;
  for (const type of MEDIA_TYPES) {
    const { weight, specificity } = wanted(type);
    // A weight has three decimals, so that specificity only breaks ties.
    const rank = weight === 0 ? 0 : weight * 10_000 + specificity;
    if (rank > bestRank) {
      best = type;
      bestRank = rank;
    }
  }
  return best;
}
