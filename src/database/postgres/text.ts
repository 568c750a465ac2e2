import { storedKey } from '../stored-key.ts';

// PostgreSQL stores no NUL in a text, and JSON can have one in every string. It is written as DLE and a digit,
// and so is DLE itself, so that every text comes back as it was.
const ESCAPE = '\u0010';

/** A text as PostgreSQL can store it. */
export function storable<T extends string | null>(text: T): T;
export function storable(text: string | null): string | null {
  if (text === null || !(text.includes('\0') || text.includes(ESCAPE))) return text;
  return text.replaceAll(ESCAPE, `${ESCAPE}1`).replaceAll('\0', `${ESCAPE}0`);
}

/** The text that was stored. */
export function stored<T extends string | null>(text: T): T;
export function stored(text: string | null): string | null {
  if (text === null || !text.includes(ESCAPE)) return text;
  return text.replaceAll(`${ESCAPE}0`, '\0').replaceAll(`${ESCAPE}1`, ESCAPE);
}

/** A text of any length as a key that PostgreSQL can store. */
export function storableKey<T extends string | null>(text: T): T {
  return storable(storedKey(text));
}
