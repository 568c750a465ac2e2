import { createHash } from 'node:crypto';

// PostgreSQL stores no NUL in a text, and JSON can have one in every string. It is written as DLE and a digit,
// and so is DLE itself, so that every text comes back as it was.
const ESCAPE = '\u0010';
const TO_ESCAPE = /[\0\u0010]/g;
const ESCAPED = /\u0010[01]/g;
/** Keys that are longer are stored as their digest: an index takes no more than a few kilobytes. */
const MAX_KEY = 200;
const DIGEST = 'sha256:';

/** A text as PostgreSQL can store it. */
export function storable<T extends string | null>(text: T): T;
export function storable(text: string | null): string | null {
  if (text === null || text.search(TO_ESCAPE) === -1) return text;
  return text.replace(TO_ESCAPE, (sign) => ESCAPE + (sign === '\0' ? '0' : '1'));
}

/** The text that was stored. */
export function stored<T extends string | null>(text: T): T;
export function stored(text: string | null): string | null {
  if (text === null || !text.includes(ESCAPE)) return text;
  return text.replace(ESCAPED, (pair) => (pair.endsWith('0') ? '\0' : ESCAPE));
}

/** A text of any length as a key: equal for equal texts, different for different ones. */
export function storableKey<T extends string | null>(text: T): T;
export function storableKey(text: string | null): string | null {
  if (text === null || (text.length <= MAX_KEY && !text.startsWith(DIGEST))) return storable(text);
  return DIGEST + createHash('sha256').update(text).digest('hex');
}
