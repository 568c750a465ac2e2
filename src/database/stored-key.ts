import { createHash } from 'node:crypto';

/** Longer keys are stored as a digest, because an index entry takes only a few kilobytes; in characters. */
export const MAX_KEY = 200;
const DIGEST = 'sha256:';

/** A text of any length as an indexable key: equal keys for equal texts only. */
export function storedKey<T extends string | null>(text: T): T;
export function storedKey(text: string | null): string | null {
  if (text === null || (text.length <= MAX_KEY && !text.startsWith(DIGEST))) return text;
  return DIGEST + createHash('sha256').update(text).digest('hex');
}
