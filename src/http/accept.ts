import { parseWeightedList, type Weighted } from './weighted-list.ts';

/** How much a client wants a media type. */
export interface Wanted {
  /** From 0, not at all, to 1. */
  readonly weight: number;
  /** 2 when the type is named, 1 when `application/*` covers it, 0 when `*\/*` does or nothing. */
  readonly specificity: 0 | 1 | 2;
}

const UNWANTED: Wanted = { weight: 0, specificity: 0 };

/**
 * Reads an Accept header: what it returns weighs a media type by the most specific range that covers it
 * (RFC 9110 12.5.1); of equal ranges the heaviest counts. Ranges that are not `usable` are left out.
 */
export function parseAccept(
  header: string,
  usable: (range: Weighted) => boolean = () => true,
): (mediaType: string) => Wanted {
  const weights = new Map<string, number>();
  for (const range of parseWeightedList(header)) {
    if (usable(range)) weights.set(range.name, Math.max(range.weight, weights.get(range.name) ?? 0));
  }
  return (mediaType) => {
    const named = weights.get(mediaType);
    if (named !== undefined) return { weight: named, specificity: 2 };
    const family = weights.get(mediaType.replace(/\/.*/, '/*'));
    if (family !== undefined) return { weight: family, specificity: 1 };
    const any = weights.get('*/*');
    return any === undefined ? UNWANTED : { weight: any, specificity: 0 };
  };
}

/**
 * The one of `types` that an Accept header wants most: that with the highest weight, among equals one that is named
 * rather than covered by `*`, then the first. Undefined when it wants none of them.
 */
export function preferred<T extends string>(
  accept: string | undefined,
  types: readonly T[],
  usable?: (range: Weighted) => boolean,
): T | undefined {
  if (accept === undefined || accept === '*/*') return types[0];
  const wanted = parseAccept(accept, usable);
  let best: T | undefined;
  let bestRank = 0;
  for (const type of types) {
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

/**
 * Whether an Accept header asks for a page: it weighs text/html above each of the `others`. Browsers do;
 * a header that is absent or only says that anything goes does not.
 */
export function prefersHtml(accept: string | undefined, others: readonly string[]): boolean {
  if (accept === undefined || accept === '*/*') return false;
  const wanted = parseAccept(accept);
  const html = wanted('text/html').weight;
  return others.every((other) => html > wanted(other).weight);
}

/** Whether an Accept header names event streams, with whatever weight. */
export function takesEventStream(accept: string | undefined): accept is string {
  return accept !== undefined && accept !== '*/*' && /text\/event-stream/i.test(accept);
}

/** Whether an Accept header asks for an event stream rather than for the other type. */
export function prefersEventStream(accept: string | undefined, other: string): boolean {
  if (!takesEventStream(accept)) return false;
  const wanted = parseAccept(accept);
  const stream = wanted('text/event-stream');
  const rival = wanted(other);
  if (stream.weight !== rival.weight) return stream.weight > rival.weight;
  return stream.weight > 0 && stream.specificity > rival.specificity;
}
