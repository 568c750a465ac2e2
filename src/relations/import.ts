import { createHash } from 'node:crypto';
import { GrowingBuffer } from '@portico/transport';
import { TimeSlice } from '../core/scheduler.ts';
import { folded } from '../core/text.ts';
import { CsvReader } from './import-csv.ts';
import {
  ArrayReader,
  type BadLine,
  type EntryReader,
  type GoodLine,
  type ImportEntry,
  ImportError,
  LineDecoder,
  LinesReader,
  type RecordFormat,
  type Refusal,
  type TakeEntry,
} from './import-readers.ts';
import type { NewUser } from './user.ts';

/** The outcome of a line: the id of its row, or the reason for its refusal. */
export type ImportOutcome<Id> = { readonly line: number; readonly id: Id } | BadLine;

/** The outcome of storing a row: its id, or the reason for its refusal. */
type Stored<Id> = { readonly id: Id } | Refusal;

/** The destination of an import. */
export interface ImportTarget<Row, Id> extends RecordFormat<Row> {
  /** Rows per commit: few enough to hold SQLite's single writer for a few milliseconds. */
  readonly batchRows: number;
  /** Maximum number of rows in one transaction, which are held in memory. */
  readonly maxRows: number;
  /** A text that differs for rows with different contents. */
  identify(row: Row): string;
  /** Stores rows in order and in one commit; each succeeds or fails alone. */
  store(rows: readonly Row[], checkpoint?: ImportCheckpoint): Promise<readonly Stored<Id>[]>;
  /** Stores all rows or none. If some are refused, at least the first of them has its refusal. */
  storeAll(rows: readonly Row[], checkpoint?: ImportCheckpoint): Promise<WholeStored<Id>>;
}

/** The outcome of storing all rows or none: their ids, or the refused rows by their index. */
type WholeStored<Id> =
  | { readonly ids: readonly Id[] }
  | { readonly refused: readonly (readonly [index: number, refusal: Refusal])[] };

/** An import and its destination. */
export interface ImportRequest<Row, Id> {
  readonly target: ImportTarget<Row, Id>;
  readonly chunks: AsyncIterable<Uint8Array>;
  readonly format: ImportFormat;
  /** Maximum number of bytes; default no limit. */
  readonly maxBytes?: number | undefined;
  /** Whether the target stores nothing: then a transaction has the outcomes of its lines one by one. */
  readonly isDry?: boolean;
  /** The recorded position of an import with a key; lines up to it are skipped. */
  readonly position?: ({ readonly key: string } & ImportPosition) | undefined;
}

/**
 * Stores valid lines in order, a batch per commit; yields the outcomes of each batch once it is durable.
 * While one batch is stored, at most the next one is read: memory use stays constant, and reading stops if
 * the consumer does not take the outcomes. Lines are stored as soon as no batch is being stored, so a slow
 * sender does not wait for a full batch.
 * Throws ImportError, StoreUnavailableError, or the error of the source, after the preceding lines are
 * stored.
 */
export async function* importLines<Row, Id>(
  request: ImportRequest<Row, Id>,
): AsyncGenerator<readonly ImportOutcome<Id>[]> {
  const { target, chunks, format, maxBytes = Number.POSITIVE_INFINITY, position } = request;
  const source = new EntrySource(format, target, maxBytes);
  const iterator = pieces(chunks);
  const beginning = position && new ImportBeginning(position, target);
  let from = position?.line ?? 0;
  const slice = new TimeSlice();
  let waiting: ImportEntry<Row>[] = [];
  /** Length of the waiting lines. */
  let size = 0;
  let failure: unknown;
  const take = (entry: ImportEntry<Row>) => {
    if (beginning?.passes(entry) === true) return;
    waiting.push(entry);
    size += sizeOf(entry);
  };

  /** Stores the waiting lines, up to a batch. */
  function storeNext(): Promise<readonly ImportOutcome<Id>[]> | undefined {
    if (waiting.length === 0) return undefined;
    const count = batchOf(waiting, target.batchRows);
    const batch = waiting.slice(0, count);
    waiting = waiting.slice(count);
    for (const entry of batch) size -= sizeOf(entry);
    const to = batch.at(-1)?.line ?? from;
    const checkpoint = position &&
      beginning && { key: position.key, from, to, digest: beginning.extend(batch) };
    from = to;
    return handled(storeBatch(target, batch, checkpoint));
  }

  /** Reads one chunk; resolves to whether there was one. */
  async function readNext(): Promise<boolean> {
    if (slice.isOver) await slice.next();
    const { value, done } = await iterator.next();
    if (done !== true) source.push(value, take);
    else {
      source.end(take);
      beginning?.requireSame();
    }
    return done !== true;
  }

  let reading: Promise<boolean> | undefined = handled(readNext());
  let storing: Promise<readonly ImportOutcome<Id>[]> | undefined;
  for (;;) {
    storing ??= storeNext();
    const isFull = waiting.length >= target.batchRows || size >= BATCH_SIZE;
    const reads = reading !== undefined && !isFull ? [reading.then(isRead, failed)] : [];
    if (storing === undefined && reads.length === 0) break;
    const event = await Promise.race([...reads, ...(storing === undefined ? [] : [storing])]);
    if (event === true) reading = handled(readNext());
    else if (event === false) reading = undefined;
    else {
      storing = storeNext();
      yield event;
    }
  }
  if (failure !== undefined) throw failure;

  function failed(error: unknown): boolean {
    failure = error;
    return false;
  }
}

function isRead(more: boolean): boolean {
  return more;
}

/** Bytes that are read at once: their lines may each have many faults. */
const PIECE = 2 * 1024;

/** The chunks in pieces. */
async function* pieces(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += PIECE) yield chunk.subarray(at, at + PIECE);
  }
}

/** Prevents an unhandled rejection report for a promise that is awaited later. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** Maximum length of the lines of a batch of more than one line. */
const BATCH_SIZE = 1024 * 1024;

function sizeOf<Row>(entry: ImportEntry<Row>): number {
  return isGood(entry) ? entry.size : 0;
}

/** The number of entries that fit a batch, at least one. */
function batchOf<Row>(entries: readonly ImportEntry<Row>[], maxRows: number): number {
  let size = 0;
  const end = entries.slice(0, maxRows).findIndex((entry) => {
    size += sizeOf(entry);
    return size > BATCH_SIZE;
  });
  return end === -1 ? maxRows : Math.max(1, end);
}

async function storeBatch<Row, Id>(
  target: ImportTarget<Row, Id>,
  batch: readonly ImportEntry<Row>[],
  checkpoint: ImportCheckpoint | undefined,
): Promise<readonly ImportOutcome<Id>[]> {
  const rows = batch.filter(isGood).map(({ row }) => row);
  const stored = rows.length === 0 && checkpoint === undefined ? [] : await target.store(rows, checkpoint);
  let nth = 0;
  return batch.map((entry) => {
    if (!isGood(entry)) return entry;
    const outcome = stored[nth++];
    if (outcome === undefined) throw new Error('a stored row has no outcome');
    return { line: entry.line, ...outcome };
  });
}

function isGood<Row>(entry: ImportEntry<Row>): entry is GoodLine<Row> {
  return 'row' in entry;
}

/**
 * Stores all lines of an import in one transaction, or none. Resolves to the outcomes of all lines, or of the
 * refused ones only. Fails as `importLines` does, and with ImportError if the transaction would be too large.
 */
export async function importTransaction<Row, Id>(
  request: ImportRequest<Row, Id>,
): Promise<readonly ImportOutcome<Id>[]> {
  const { target, position } = request;
  const beginning = position && new ImportBeginning(position, target);
  const entries = await readEntries(request, beginning);
  if (request.isDry === true) return storeBatch(target, entries, undefined);
  const refused = entries.filter((entry): entry is BadLine => !isGood(entry));
  if (refused.length > 0) return refused;
  const good = entries.filter(isGood);
  const last = entries.at(-1)?.line;
  if (last === undefined) return [];
  const checkpoint = position &&
    beginning && { key: position.key, from: position.line, to: last, digest: beginning.extend(entries) };
  const stored = await target.storeAll(
    good.map(({ row }) => row),
    checkpoint,
  );
  const lineOf = (index: number) => good[index]?.line ?? last;
  if ('refused' in stored) return stored.refused.map(([i, refusal]) => ({ line: lineOf(i), ...refusal }));
  return stored.ids.map((id, i) => ({ line: lineOf(i), id }));
}

async function readEntries<Row, Id>(
  { target, chunks, format, maxBytes = Number.POSITIVE_INFINITY }: ImportRequest<Row, Id>,
  beginning: ImportBeginning<Row> | undefined,
): Promise<readonly ImportEntry<Row>[]> {
  const source = new EntrySource(format, target, Math.min(maxBytes, MAX_TRANSACTION));
  const entries: ImportEntry<Row>[] = [];
  let size = 0;
  let refused = 0;
  const take = (entry: ImportEntry<Row>) => {
    if (beginning?.passes(entry) === true) return;
    size += sizeOf(entry);
    if (size > MAX_TRANSACTION) throw tooLarge(MAX_TRANSACTION, entry.line);
    if (!isGood(entry) && ++refused > MAX_DETAILED) {
      const { errors: _, ...rest } = entry;
      entries.push(rest);
    } else entries.push(entry);
    if (entries.length <= target.maxRows) return;
    const most = target.maxRows.toLocaleString('en-US');
    throw new ImportError(
      'IMPORT_TOO_LARGE',
      `One transaction takes at most ${most} ${target.name}`,
      entry.line,
    );
  };
  const slice = new TimeSlice();
  for await (const piece of pieces(chunks)) {
    source.push(piece, take);
    if (slice.isOver) await slice.next();
  }
  source.end(take);
  beginning?.requireSame();
  return entries;
}

function tooLarge(maxBytes: number, line?: number): ImportError {
  return new ImportError('IMPORT_TOO_LARGE', `The import is larger than ${maxBytes} bytes`, line);
}

/** Refused lines of a transaction whose faults are kept, each with its place; others have the reason alone. */
const MAX_DETAILED = 1_000;

/** Users per commit of an import. */
export const IMPORT_BATCH = 2_000;

/** Users of an import in one transaction, whose commit holds SQLite's single writer. */
export const MAX_TRANSACTION_ROWS = 50_000;

/** Maximum size of an import in one transaction, which is held in memory, in bytes. */
const MAX_TRANSACTION = 16 * 1024 * 1024;

/** Time for which positions are kept, in milliseconds: 30 days. */
export const IMPORT_KEPT = 30 * 24 * 3_600_000;

/**
 * Maximum number of bytes buffered until one may end an entry, so that a sender of single bytes costs little.
 */
const GATHERED = 16 * 1024;
/** Characters that may end an entry in each format. */
const ENDS: Readonly<Record<ImportFormat, readonly string[]>> = {
  ndjson: ['\n'],
  csv: ['\n'],
  array: [',', ']'],
};

/** Turns the bytes of an import into entries, up to a size limit. */
export class EntrySource<Row> {
  readonly #decoder = new LineDecoder();
  readonly #reader: EntryReader<Row>;
  readonly #ends: readonly string[];
  readonly #maxBytes: number;
  readonly #gathered = new GrowingBuffer();
  #bytes = 0;

  constructor(format: ImportFormat, records: RecordFormat<Row>, maxBytes: number) {
    this.#ends = ENDS[format];
    this.#reader = entryReader(format, records);
    this.#maxBytes = maxBytes;
  }

  /** Throws ImportError for an error that makes the rest unreadable. */
  push(chunk: Uint8Array, take: TakeEntry<Row>): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#maxBytes) {
      throw tooLarge(this.#maxBytes);
    }
    if (this.#gathered.length + chunk.length < GATHERED && !this.#mayEnd(chunk)) {
      this.#gathered.append(chunk);
      return;
    }
    this.#reader.push(this.#decoder.decode(this.#withGathered(chunk)), take);
  }

  /** Throws ImportError. */
  end(take: TakeEntry<Row>): void {
    this.#reader.push(this.#decoder.decode(this.#gathered.take()) + this.#decoder.end(), take);
    this.#reader.end(take);
  }

  #withGathered(chunk: Uint8Array): Uint8Array {
    if (this.#gathered.length === 0) return chunk;
    this.#gathered.append(chunk);
    return this.#gathered.take();
  }

  #mayEnd(chunk: Uint8Array): boolean {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    return this.#ends.some((end) => bytes.includes(end));
  }
}

/** The formats of an import. */
export type ImportFormat = 'ndjson' | 'csv' | 'array';

/** Creates the reader of a format. */
export function entryReader<Row>(format: ImportFormat, records: RecordFormat<Row>): EntryReader<Row> {
  if (format === 'csv') return new CsvReader(records);
  return format === 'array' ? new ArrayReader(records) : new LinesReader(records);
}

/** The index of the first user with the email of an earlier one; undefined if there is none. */
export function firstDuplicate(users: readonly NewUser[]): number | undefined {
  const seen = new Set<string>();
  const found = users.findIndex(({ email }) => seen.size === seen.add(folded(email)).size);
  return found === -1 ? undefined : found;
}

/** The smaller of two indexes, either of which may be undefined. */
export function earlier(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}

/** The recorded progress of an import with a key. */
export interface ImportPosition {
  /** The last stored line; 0 for a new import. */
  readonly line: number;
  /** A digest of the lines up to there; undefined for a new import. */
  readonly digest: string | undefined;
}

/** Moves the recorded position of an import, in the commit that stores its users. */
export interface ImportCheckpoint {
  /** The key of the import. */
  readonly key: string;
  /**
   * The previously recorded line. If another line is recorded, nothing is stored and the write fails with
   * ImportError.
   */
  readonly from: number;
  readonly to: number;
  /** A digest of the lines up to `to`. */
  readonly digest: string;
}

/**
 * Checks that a resumed import begins with the lines already stored under its key; otherwise lines that were
 * never stored would be skipped. It hashes the contents of rows, and the codes of refused lines.
 */
export class ImportBeginning<Row> {
  readonly #position: ImportPosition;
  readonly #target: Pick<ImportTarget<Row, unknown>, 'identify'>;
  readonly #hash = createHash('sha256');
  #isSame = false;

  constructor(position: ImportPosition, target: Pick<ImportTarget<Row, unknown>, 'identify'>) {
    this.#position = position;
    this.#target = target;
  }

  /**
   * Adds the next line; returns whether it was stored before. Throws ImportError if the stored lines differ.
   */
  passes(entry: ImportEntry<Row>): boolean {
    if (entry.line > this.#position.line) {
      this.requireSame();
      return false;
    }
    this.#hash.update(this.#textOf(entry));
    return true;
  }

  /**
   * Throws ImportError if the stored lines differ. Call it after the last line too: an import may end before
   * the recorded position.
   */
  requireSame(): void {
    const { line, digest } = this.#position;
    if (this.#isSame || digest === undefined) return;
    if (this.#hash.copy().digest('hex') !== digest) {
      const message = `Another import with this key has stored different lines, up to line ${line}; send this one with a new key`;
      throw new ImportError('IMPORT_KEY_REUSED', message);
    }
    this.#isSame = true;
  }

  /** Adds lines that are about to be stored; returns the digest up to the last of them. */
  extend(entries: readonly ImportEntry<Row>[]): string {
    this.#hash.update(entries.map((entry) => this.#textOf(entry)).join(''));
    return this.#hash.copy().digest('hex');
  }

  /** NUL separates the parts, which cannot contain it. */
  #textOf(entry: ImportEntry<Row>): string {
    const content = isGood(entry) ? this.#target.identify(entry.row) : entry.code;
    return `${entry.line}\0${content}\0`;
  }
}
