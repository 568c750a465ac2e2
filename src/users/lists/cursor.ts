import { createHmac, timingSafeEqual } from 'node:crypto';
import { HttpProblem } from '../../http/problem.ts';
import type { SortKeys, UserSelection } from '../user-list.ts';

/** Where a page begins. */
export interface CursorPosition {
  /** The keys of the user next to the page. */
  readonly next: SortKeys;
  /** Whether the page is before that user. */
  readonly backwards: boolean;
}

/** The length of a signature, in bytes. */
const SIGNATURE = 16;

/**
 * Writes a cursor: the position and a signature by the key of the database, over the filters and the order too, so that
 * a cursor fits one list only.
 */
export function writeCursor(key: Uint8Array, selection: UserSelection, position: CursorPosition): string {
  const payload = Buffer.from(JSON.stringify([Number(position.backwards), ...position.next]));
  return Buffer.concat([sign(key, selection, payload), payload]).toString('base64url');
}

/** Reads a cursor that `writeCursor` made for the same list. Throws HttpProblem for any other text. */
export function readCursor(key: Uint8Array, selection: UserSelection, cursor: string): CursorPosition {
  const bytes = Buffer.from(cursor, 'base64url');
  const payload = bytes.subarray(SIGNATURE);
  const isOurs =
    bytes.length > SIGNATURE &&
    bytes.toString('base64url') === cursor &&
    timingSafeEqual(bytes.subarray(0, SIGNATURE), sign(key, selection, payload));
  if (!isOurs) {
    throw new HttpProblem(
      400,
      'INVALID_CURSOR',
      '"cursor" takes a cursor of a link to another page of the same list; begin without one',
    );
  }
  const [backwards, ...next] = JSON.parse(payload.toString()) as [number, ...SortKeys];
  return { next, backwards: backwards === 1 };
}

function sign(key: Uint8Array, { filters, order }: UserSelection, payload: Uint8Array): Buffer {
  const list = JSON.stringify([filters, order]);
  return createHmac('sha256', key).update(`${list}\n`).update(payload).digest().subarray(0, SIGNATURE);
}
