import { parseAccept } from '../http/accept.ts';

/** What the JSON of this door can be called, best first. */
export const MEDIA_TYPES = [
  'application/vnd.spring-boot.actuator.v3+json',
  'application/vnd.spring-boot.actuator.v2+json',
  'application/json',
] as const;

export type MediaType = (typeof MEDIA_TYPES)[number];

const DEFAULT: MediaType = MEDIA_TYPES[0];

/**
 * The media type for an Accept header: the one it wants most, among equals one that it names rather than
 * covers with `*`, then the best of ours. A header that takes none of them gets the default all the same.
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
