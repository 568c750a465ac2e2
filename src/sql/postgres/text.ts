import { storedKey } from '../inbox-sql.ts';
import { channelOf } from './notifier.ts';

// PostgreSQL cannot store NUL in text, but any JSON string can contain it. NUL and the escape character DLE
// itself are escaped as DLE and a digit.
const ESCAPE = '\u0010';

/** Escapes text for PostgreSQL; `stored` reverses it. */
export function storable<T extends string | null>(text: T): T;
export function storable(text: string | null): string | null {
  if (text === null || !(text.includes('\0') || text.includes(ESCAPE))) return text;
  return text.replaceAll(ESCAPE, `${ESCAPE}1`).replaceAll('\0', `${ESCAPE}0`);
}

/** Unescapes a stored text. */
export function stored<T extends string | null>(text: T): T;
export function stored(text: string | null): string | null {
  if (text === null || !text.includes(ESCAPE)) return text;
  return text.replaceAll(`${ESCAPE}0`, '\0').replaceAll(`${ESCAPE}1`, ESCAPE);
}

/** Turns a text of any length into an indexable key, escaped for PostgreSQL. */
export function storableKey<T extends string | null>(text: T): T {
  return storable(storedKey(text));
}

/** Enqueues a delivery and notifies the services; the server sends the notification at the commit. */
export const ENQUEUE_IN_POSTGRES = `
  WITH stored AS (
    INSERT INTO enqueued (id, source, event, body, received_at, dedup_key)
    VALUES ($1, $2, $3, $4, $5, $6) RETURNING id)
  SELECT pg_notify('${channelOf('enqueued')}', '') FROM stored`;
