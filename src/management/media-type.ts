/** What the JSON of this door can be called, best first. */
export const MEDIA_TYPES = [
  'application/vnd.spring-boot.actuator.v3+json',
  'application/vnd.spring-boot.actuator.v2+json',
  'application/json',
] as const;

export type MediaType = (typeof MEDIA_TYPES)[number];

const DEFAULT: MediaType = MEDIA_TYPES[0];
const QUALITY = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

interface Range {
  readonly type: string;
  readonly quality: number;
}

/**
 * The media type for an Accept header: the one it wants most, among equals one that it names rather than
 * covers with `*`, then the best of ours. A header that takes none of them gets the default all the same.
 */
export function mediaTypeFor(accept: string | undefined): MediaType {
  if (accept === undefined || accept === '*/*') return DEFAULT;
  const ranges = accept.toLowerCase().split(',').map(parseRange);
  let best = DEFAULT;
  let bestRank = 0;
  for (const type of MEDIA_TYPES) {
    const rank = rankOf(type, ranges);
    if (rank > bestRank) {
      best = type;
      bestRank = rank;
    }
  }
  return best;
}

function parseRange(text: string): Range {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim());
  const quality = parameters.map((parameter) => QUALITY.exec(parameter)?.[1]).find((q) => q !== undefined);
  return { type, quality: quality === undefined ? 1 : Number(quality) };
}

/** 0 when it is not wanted. The quality comes first: it has three decimals, so specificity only breaks ties. */
function rankOf(type: MediaType, ranges: readonly Range[]): number {
  const patterns = ['*/*', 'application/*', type];
  for (let specificity = 2; specificity >= 0; specificity--) {
    // The most specific range that covers a type decides about it (RFC 9110 12.5.1).
    const range = ranges.find((candidate) => candidate.type === patterns[specificity]);
    if (range !== undefined) return range.quality === 0 ? 0 : range.quality * 10_000 + specificity;
  }
  return 0;
}
