import { parseWeightedList } from '../weighted-list.ts';

/** A coding in which a file is stored next to its plain form. */
export type ContentCoding = 'br' | 'gzip';

const extensions = { br: '.br', gzip: '.gz' } as const;

/** Name under which a file is stored in a coding, or plain without one. */
export function storedName(name: string, coding: ContentCoding | undefined): string {
  return coding === undefined ? name : name + extensions[coding];
}

/**
 * The stored coding that the client prefers, undefined for the plain file. `available` is in order
 * of our own preference, which decides between equal weights.
 */
export function chooseCoding(
  acceptEncoding: string | undefined,
  available: readonly ContentCoding[],
): ContentCoding | undefined {
  if (acceptEncoding === undefined) return undefined;
  const weights = new Map(parseWeightedList(acceptEncoding).map(({ name, weight }) => [name, weight]));
  const weightOf = (coding: string) => weights.get(coding) ?? weights.get('*') ?? 0;

  let best: ContentCoding | undefined;
  let bestWeight = weights.get('identity') ?? 0;
  for (const coding of available) {
    const weight = weightOf(coding);
    if (weight > 0 && (weight > bestWeight || (best === undefined && weight === bestWeight))) {
      best = coding;
      bestWeight = weight;
    }
  }
  return best;
}
