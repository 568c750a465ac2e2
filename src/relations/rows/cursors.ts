import { createHmac, timingSafeEqual } from 'node:crypto';
import { HttpProblem } from '@portico/transport';
import { GenerationalCache } from '../../core/generational-cache.ts';
import { codecOf } from '../codecs.ts';
import type { Value } from '../relation.ts';
import type { RowOrder } from './orders.ts';

/** The texts of the values by which a row is sorted. */
export type RowKeys = readonly (string | null)[];

/** The start of a page. */
export interface RowPosition {
  /** The keys of the neighbouring row. */
  readonly next: RowKeys;
  /** Whether the page ends before that row. */
  readonly backwards: boolean;
}

/** The cursors around a page. */
interface RowCursorPair {
  readonly next: string;
  readonly prev: string;
}

/** Between the values by which a list is sorted and the texts of cursors. */
export interface SortReader {
  text(value: Value): string | null;
  value(text: string | null): Value;
}

export function sortReader({ column }: RowOrder): SortReader {
  const { formatText, parseText } = codecOf(column.type);
  return {
    text: (value) => (value === null ? null : formatText(value)),
    value(text) {
      const parsed = text === null ? { value: null } : parseText(text);
      return 'value' in parsed ? parsed.value : null;
    },
  };
}

/** Length of a signature, in bytes. */
const SIGNATURE = 16;
/** Maximum size of the positions that are kept, in bytes. */
const MAX_BYTES = 512 * 1024;

/**
 * Writes and reads the cursors of lists: a direction and the keys of a page's first and last row, with a signature
 * of the list and of the keys by the key of the database. Both cursors of a page have the same signature, and those
 * written lately are read without verifying it again.
 */
export class RowCursors {
  readonly #written = new GenerationalCache<readonly [first: RowKeys, last: RowKeys]>(MAX_BYTES);

  /** The cursors of the pages around one with these rows. */
  write(key: Uint8Array, list: string, first: RowKeys, last: RowKeys): RowCursorPair {
    const payload = JSON.stringify([first, last]);
    const text = `${sign(key, list, payload)}${Buffer.from(payload).toString('base64url')}`;
    const kept = `${text}${list}`;
    if (this.#written.get(kept) === undefined) {
      this.#written.set(kept, [first, last], 200 + 2 * kept.length + 4 * payload.length);
    }
    return { next: `n${text}`, prev: `p${text}` };
  }

  /** Reads a cursor that `write` made for the same list. Throws HttpProblem for any other text. */
  read(key: Uint8Array, list: string, cursor: string): RowPosition {
    const backwards = cursor.startsWith('p');
    const text = cursor.slice(1);
    const known = this.#written.get(`${text}${list}`);
    const keys = known ?? (backwards || cursor.startsWith('n') ? verified(key, list, text) : undefined);
    if (keys === undefined) {
      throw new HttpProblem(
        400,
        'INVALID_CURSOR',
        '"cursor" must come from a link to another page of the same list; start again without one',
      );
    }
    return { next: backwards ? keys[0] : keys[1], backwards };
  }
}

function verified(key: Uint8Array, list: string, text: string): readonly [RowKeys, RowKeys] | undefined {
  const end = Math.ceil((SIGNATURE * 4) / 3);
  const bytes = Buffer.from(text.slice(end), 'base64url');
  if (bytes.toString('base64url') !== text.slice(end)) return undefined;
  const payload = bytes.toString();
  const [given, expected] = [Buffer.from(text.slice(0, end)), Buffer.from(sign(key, list, payload))];
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
  return JSON.parse(payload) as [RowKeys, RowKeys];
}

/** A signature in base64url, without padding. */
function sign(key: Uint8Array, list: string, payload: string): string {
  const digest = createHmac('sha256', key).update(`${list}\n${payload}`).digest();
  return digest.subarray(0, SIGNATURE).toString('base64url');
}
