import { createHash } from 'node:crypto';

/** Keys that are longer are stored as their digest: the index of an engine takes no more than a few kilobytes. */
export const MAX_KEY = 200;
const DIGEST = 'sha256:';

/** A text of any length as a key of every engine: equal for equal texts, different for different ones. */
export function storedKey<T extends string | null>(text: T): T;
export function storedKey(text: string | null): string | null {
  if (text === null || (text.length <= MAX_KEY && !text.startsWith(DIGEST))) return text;
  return DIGEST + createHash('sha256').update(text).digest('hex');
}
