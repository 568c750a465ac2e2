import { parseWeightedList } from './weighted-list.ts';

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
 * (RFC 9110 12.5.1); of equal ranges the heaviest counts.
 */
export function parseAccept(header: string): (mediaType: string) => Wanted {
  const weights = new Map<string, number>();
  for (const { name, weight } of parseWeightedList(header)) {
    weights.set(name, Math.max(weight, weights.get(name) ?? 0));
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
