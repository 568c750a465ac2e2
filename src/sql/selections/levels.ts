import { createHash } from 'node:crypto';
import type { Present } from '../../relations/codec.ts';
import { codecOf } from '../../relations/codecs.ts';
import type { Column, ColumnType, Value } from '../../relations/relation.ts';
import type { RowPage } from '../../relations/rows/row-lists.ts';
import { LIMITS, SelectionLimitError } from '../../relations/selections/limits.ts';
import type { BoundText, RowDialect } from '../dialects/row-dialects.ts';

/** A part of a row's JSON. */
export type Piece =
  | { readonly is: 'text'; readonly text: string }
  /** What the statement has written. */
  | { readonly is: 'json'; readonly at: number }
  | { readonly is: 'value'; readonly at: number; readonly type: ColumnType }
  | { readonly is: 'rows'; readonly level: Level };

/** A value that a statement selects. */
export interface Selected {
  readonly at: number;
  readonly type: ColumnType;
}

/** How nested rows are read, as plain data that a thread takes. */
export interface Level {
  readonly path: string;
  /** Whether it is an object or null, else an array. */
  readonly isReference: boolean;
  /** Where the values stand, in the rows of the level above, by which rows are found. */
  readonly links: readonly Selected[];
  /**
   * Selects the index of the link's values among those that are bound first, and what the pieces need. Their parameters
   * are followed by `values` and the highest number of rows.
   */
  readonly rows: BoundText;
  /** Counts the rows that have to be looked at; undefined if an index yields those that are shown. */
  readonly looked: BoundText | undefined;
  /** Whether the number of rows per row above is limited; otherwise too many are refused. */
  readonly isLimited: boolean;
  /** Whether rows may be so large that not all may be read. */
  readonly isWide: boolean;
  readonly pieces: readonly Piece[];
  /** The same rows grouped by the statement; undefined if the engine cannot write them, or they may be large. */
  readonly groups: Groups | undefined;
}

/** The rows of each key as one text. */
interface Groups {
  /** Selects the index of each key, and the number of its rows before their JSON. Parameters are as in `rows`, without the last. */
  readonly statement: BoundText;
  /** The highest number of rows of a key. */
  readonly most: number;
  /** Maximum size of the columns of a row in bytes. */
  readonly maxBytes: number;
}

/** How a page with nested rows is read, as plain data that a thread takes. */
export interface PagePlan {
  /** Selects the sizes of rows that may be large. */
  readonly sizes: BoundText | undefined;
  /** Selects the rows, at most as many as its last value. */
  readonly rows: BoundText;
  readonly limit: number;
  readonly backwards: boolean;
  /** The values by which rows are sorted. */
  readonly keys: readonly Selected[];
  readonly pieces: readonly Piece[];
}

type Rows = readonly (readonly unknown[])[];

/** A statement of a read. */
export interface LevelStatement extends BoundText {
  /** Its driver may stop once the values of its rows have more bytes. */
  readonly maxBytes?: number;
}

/**
 * A read of several statements, which its driver runs in one snapshot. It yields a statement and gets its rows, or yields
 * undefined where other work may run.
 */
export type LevelReads<T> = Generator<LevelStatement | undefined, T, Rows>;

/** What a read may take. */
export interface Budget {
  readonly rows: number;
  readonly bytes: number;
}

/** Runs a read without a pause; throws what it throws. */
export function readAtOnce<T>(reads: LevelReads<T>, run: (statement: LevelStatement) => Rows): T {
  for (let rows: Rows = []; ; ) {
    const { done, value } = reads.next(rows);
    if (done) return value;
    rows = value === undefined ? [] : run(value);
  }
}

/** A page ends once its values have this many bytes. */
export const PAGE_BYTES = 1024 * 1024;
/** The text of a page with more characters is encoded in steps. */
const LARGE = 256 * 1024;
/** How many rows are written until other work may run. */
const ROWS_PER_TURN = 1_000;

/** Reads a page with nested rows; the order of bound parameters is that of the dialect's `givenRows`. */
export function readPlan(plan: PagePlan, dialect: RowDialect, budget: Budget): LevelReads<RowPage> {
  return new LevelReader(dialect, budget).page(plan);
}

class LevelReader {
  readonly #dialect: RowDialect;
  readonly #budget: Budget;
  #rows = 0;
  #bytes = 0;
  #turn = 0;

  constructor(dialect: RowDialect, budget: Budget) {
    this.#dialect = dialect;
    this.#budget = budget;
  }

  *page(plan: PagePlan): LevelReads<RowPage> {
    let { limit } = plan;
    if (plan.sizes !== undefined) limit = Math.max(1, fitting(yield plan.sizes, limit));
    const { text, values } = plan.rows;
    const found = yield { text, values: [...values.slice(0, -1), limit + 1] };
    const taken = found.length > limit ? found.slice(0, limit) : found;
    const rows = plan.backwards ? taken.toReversed() : taken;
    const texts = yield* this.#texts(plan.pieces, rows);
    const keys = (row: readonly unknown[] | undefined) => row && plan.keys.map((key) => this.#read(key, row));
    const around = {
      count: rows.length,
      first: keys(rows[0]),
      last: keys(rows.at(-1)),
      more: found.length > limit,
    };
    const size = sum(texts.map(({ length }) => length));
    if (size < LARGE) return { json: texts.join(), ...around };
    return largePage(around, yield* encoded(texts));
  }

  /** The JSON of rows. */
  *#texts(pieces: readonly Piece[], rows: Rows): LevelReads<readonly string[]> {
    const writers: ((row: readonly unknown[], nth: number) => string)[] = [];
    for (const piece of pieces) {
      if (piece.is !== 'rows') {
        writers.push(this.#writer(piece));
        continue;
      }
      const nested = yield* this.#nested(piece.level, rows);
      writers.push((_, nth) => nested[nth] ?? '');
    }
    const texts: string[] = [];
    for (let nth = 0; nth < rows.length; nth++) {
      const row = rows[nth] ?? [];
      let text = '';
      for (const write of writers) text += write(row, nth);
      texts.push(text);
      if (++this.#turn % ROWS_PER_TURN === 0) yield undefined;
    }
    return texts;
  }

  #writer(piece: Exclude<Piece, { readonly is: 'rows' }>): (row: readonly unknown[]) => string {
    if (piece.is === 'text') return () => piece.text;
    const { at } = piece;
    if (piece.is === 'json') return (row) => String(row[at]);
    const write = jsonWriter(piece.type, this.#dialect);
    return (row) => (row[at] === null ? 'null' : write(row[at]));
  }

  /** The JSON of the rows that each row of the level above has. */
  *#nested(level: Level, above: Rows): LevelReads<readonly string[]> {
    const places = new Map<unknown, number>();
    const keys: (readonly unknown[])[] = [];
    const [first, ...others] = level.links;
    const placeOf = (row: readonly unknown[]): number => {
      if (level.links.some(({ at }) => row[at] === null)) return -1;
      const text =
        others.length === 0
          ? comparable(row[first?.at ?? 0])
          : level.links.map(({ at }) => comparable(row[at])).join('\0');
      const known = places.get(text);
      if (known !== undefined) return known;
      places.set(text, keys.length);
      return keys.push(row) - 1;
    };
    const place = above.map(placeOf);
    const { groups } = level;
    const isGrouped = groups !== undefined && this.#mayGroup(groups, keys.length);
    const arrays =
      keys.length === 0
        ? []
        : isGrouped
          ? yield* this.#grouped(level, groups.statement, keys)
          : yield* this.#arrays(level, keys);
    const wrapped = level.isReference
      ? arrays.map((text) => text || 'null')
      : arrays.map((text) => `[${text}]`);
    const none = level.isReference ? 'null' : '[]';
    return place.map((at) => {
      const text = at === -1 ? none : (wrapped[at] ?? none);
      this.#bytes += text.length;
      if (this.#bytes > this.#budget.bytes) throw new SelectionLimitError('bytes', level.path);
      return text;
    });
  }

  /** The rows of each key with commas between, empty without a row. */
  *#arrays(level: Level, keys: Rows): LevelReads<readonly string[]> {
    const found = yield* this.#found(level, keys);
    const texts = yield* this.#texts(level.pieces, found);
    const counts = new Uint32Array(keys.length);
    const arrays: string[] = keys.map(() => '');
    for (const [nth, row] of found.entries()) {
      const at = Number(row[0]);
      const text = texts[nth] ?? '';
      const before = counts[at] ?? 0;
      if (!level.isReference && !level.isLimited && before >= LIMITS.perRow)
        throw new SelectionLimitError('perRow', level.path);
      counts[at] = before + 1;
      arrays[at] = before === 0 ? text : `${arrays[at]},${text}`;
    }
    return arrays;
  }

  /** Whether a statement that groups rows stays within the budget; where it ends early, it does in any case. */
  #mayGroup({ most, maxBytes }: Groups, keys: number): boolean {
    if (this.#dialect.endsEarly) return true;
    const rows = most * keys;
    return rows <= this.#budget.rows - this.#rows && rows * maxBytes <= this.#budget.bytes;
  }

  /** The same as `#arrays`, by a statement that groups the rows. */
  *#grouped(level: Level, { text, values }: BoundText, keys: Rows): LevelReads<readonly string[]> {
    const bound = this.#bound(level, keys);
    yield* this.#look(level, bound);
    const maxBytes = this.#budget.bytes - this.#bytes;
    const arrays: string[] = keys.map(() => '');
    let bytes = 0;
    for (const [nth, group] of yield { text, values: [...bound, ...values], maxBytes }) {
      const all = String(group);
      const count = Number.parseInt(all, 10);
      if (!level.isLimited && count > LIMITS.perRow) throw new SelectionLimitError('perRow', level.path);
      const array = all.slice(all.indexOf(' ') + 1);
      this.#rows += count;
      bytes += array.length;
      if (this.#rows > this.#budget.rows) throw new SelectionLimitError('rows', level.path);
      arrays[Number(nth)] = array;
    }
    if (bytes > maxBytes) throw new SelectionLimitError('bytes', level.path);
    return arrays;
  }

  /** The values that are bound for keys. */
  #bound(level: Level, keys: Rows): BoundText['values'] {
    const given = level.links.map((link) =>
      keys.map((row) => this.#dialect.storage(link.type).bind(this.#read(link, row))),
    );
    const types = level.links.map(({ type }) => this.#dialect.storage(type).type);
    return this.#dialect.givenRows(types, given).values;
  }

  /** Throws SelectionLimitError if too many rows have to be looked at. */
  *#look({ looked, path }: Level, bound: BoundText['values']): LevelReads<void> {
    if (looked === undefined) return;
    const [row] = yield { text: looked.text, values: [...bound, ...looked.values] };
    if (Number(row?.[0]) > this.#budget.rows) throw new SelectionLimitError('scan', path);
  }

  *#found(level: Level, keys: Rows): LevelReads<Rows> {
    const bound = this.#bound(level, keys);
    yield* this.#look(level, bound);
    const left = this.#budget.rows - this.#rows;
    const statement = { text: level.rows.text, values: [...bound, ...level.rows.values, left + 1] };
    const maxBytes = this.#budget.bytes - this.#bytes;
    const found = yield level.isWide ? { ...statement, maxBytes } : statement;
    if (level.isWide && sum(found.map(sizeOf)) > maxBytes) throw new SelectionLimitError('bytes', level.path);
    this.#rows += found.length;
    if (found.length > left) throw new SelectionLimitError('rows', level.path);
    return found;
  }

  #read({ at, type }: Selected, row: readonly unknown[]): Value {
    return this.#dialect.storage(type).read(row[at]);
  }
}

/** Rows with commas between in UTF-8, and a digest. */
function* encoded(rows: readonly string[]): LevelReads<NonNullable<RowPage['large']>> {
  const digest = createHash('sha1');
  const pieces: Buffer[] = [];
  let text = '';
  for (const [i, row] of rows.entries()) {
    text += i === 0 ? row : `,${row}`;
    if (text.length < LARGE && i < rows.length - 1) continue;
    const piece = Buffer.from(text);
    pieces.push(piece);
    text = '';
    yield undefined;
    for (let at = 0; at < piece.length; at += 4 * LARGE) {
      digest.update(piece.subarray(at, at + 4 * LARGE));
      yield undefined;
    }
  }
  return { bytes: Buffer.concat(pieces), digest: digest.digest('base64url') };
}

/** A page that makes its text only when it is read. */
export function largePage(
  around: Omit<RowPage, 'json' | 'large'>,
  large: NonNullable<RowPage['large']>,
): RowPage {
  const { buffer, byteOffset, byteLength } = large.bytes;
  return {
    ...around,
    large,
    get json() {
      return Buffer.from(buffer, byteOffset, byteLength).toString();
    },
  };
}

/** Runs a statement row by row, up to a size of its values. */
export function takeBytes(rows: Iterable<readonly unknown[]>, maxBytes: number): Rows {
  const taken: (readonly unknown[])[] = [];
  let bytes = 0;
  for (const row of rows) {
    taken.push(row);
    bytes += sizeOf(row);
    if (bytes > maxBytes) break;
  }
  return taken;
}

/** The size of the texts and bytes of a row, at least. */
function sizeOf(row: readonly unknown[]): number {
  let size = 0;
  for (const value of row) {
    if (typeof value === 'string') size += value.length;
    else if (value instanceof Uint8Array) size += value.length;
  }
  return size;
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);

/** A stored value as it is compared with others of its column. */
function comparable(stored: unknown): unknown {
  return stored instanceof Uint8Array ? Buffer.from(stored).toString('latin1') : stored;
}

/** How many of the first rows fit a page, by their sizes. */
function fitting(sizes: Rows, limit: number): number {
  let bytes = 0;
  let rows = 0;
  for (const [size] of sizes) {
    if (rows === limit || (rows > 0 && bytes + Number(size) > PAGE_BYTES)) break;
    bytes += Number(size);
    rows++;
  }
  return rows;
}

/** Writes the JSON of what a statement selects of a type. */
function jsonWriter(type: ColumnType, dialect: RowDialect): (stored: unknown) => string {
  switch (type.kind) {
    case 'serial':
    case 'integer':
      return String;
    case 'text':
    case 'enum':
      return JSON.stringify;
    default: {
      const { format } = codecOf(type);
      const { read } = dialect.storage(type);
      return (stored) => format(read(stored) as Present);
    }
  }
}

/** Writes a member of a row. */
export interface Member {
  /** The name of the member and what stands before it. */
  readonly head: string;
  json(stored: unknown): string;
}

/** The rows as JSON objects with commas between. */
export function jsonOf(rows: readonly (readonly unknown[])[], members: readonly Member[]): string {
  let text = '';
  for (const row of rows) {
    if (text !== '') text += ',';
    for (let i = 0; i < members.length; i++) {
      const { head, json } = members[i] as Member;
      text += head + json(row[i]);
    }
    text += members.length === 0 ? '{}' : '}';
  }
  return text;
}

/** Writes the member of a column, the `nth` of a row. */
export function memberOf({ name: column, type }: Column, dialect: RowDialect, nth: number): Member {
  const write = jsonWriter(type, dialect);
  return {
    head: `${nth === 0 ? '{' : ','}${JSON.stringify(column)}:`,
    json: (stored) => (stored === null ? 'null' : write(stored)),
  };
}
