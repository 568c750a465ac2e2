import { parseWeightedList, type Weighted } from '../../http/weighted-list.ts';

/** The weight of a media type is that of its most specific range; of equal ranges the heaviest counts. */
function mediaTypeWeight(ranges: readonly Weighted[], mediaType: string): number {
  const anySubtype = mediaType.replace(/\/.*/, '/*');
  for (const range of [mediaType, anySubtype, '*/*']) {
    const weights = ranges.filter(({ name }) => name === range).map(({ weight }) => weight);
    if (weights.length > 0) return Math.max(...weights);
  }
  return 0;
}

/**
 * Whether an Accept header asks for a page rather than for a GraphQL result: it weighs text/html above
 * both application/json and application/graphql-response+json. Browsers do; a header that is absent or
 * only says that anything goes does not.
 */
export function prefersHtml(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  const ranges = parseWeightedList(accept);
  const html = mediaTypeWeight(ranges, 'text/html');
  return (
    html > mediaTypeWeight(ranges, 'application/json') &&
    html > mediaTypeWeight(ranges, 'application/graphql-response+json')
  );
}
