import { createHash } from 'node:crypto';
import { GrowingBuffer } from '@portico/transport';
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
  type TakeEntry,
} from './import-readers.ts';
import type { NewUser } from './user.ts';
import type { DatabaseUserStore } from './user-stores.ts';

/** The outcome of a line: the id of its user, or the reason for its refusal. */
export type ImportOutcome = { readonly line: number; readonly id: number } | BadLine;

/** An import and its destination. */
export interface ImportRequest {
  readonly users: Pick<DatabaseUserStore, 'importUsers' | 'importAll'>;
  readonly chunks: AsyncIterable<Uint8Array>;
  readonly format: ImportFormat;
  /** Maximum number of bytes; default no limit. */
  readonly maxBytes?: number | undefined;
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
export async function* importUsers(request: ImportRequest): AsyncGenerator<readonly ImportOutcome[]> {
  const { users, chunks, format, maxBytes = Number.POSITIVE_INFINITY, position } = request;
  const source = new EntrySource(format, maxBytes);
  const iterator = chunks[Symbol.asyncIterator]();
  const beginning = position && new ImportBeginning(position);
  let from = position?.line ?? 0;
  let waiting: ImportEntry[] = [];
  let failure: unknown;
  const take = (entry: ImportEntry) => {
    if (beginning?.passes(entry) !== true) waiting.push(entry);
  };

  /** Stores the waiting lines, up to a batch. */
  function storeNext(): Promise<readonly ImportOutcome[]> | undefined {
    if (waiting.length === 0) return undefined;
    const batch = waiting.slice(0, IMPORT_BATCH);
    waiting = waiting.slice(IMPORT_BATCH);
    const to = batch.at(-1)?.line ?? from;
    const checkpoint = position &&
      beginning && { key: position.key, from, to, digest: beginning.extend(batch) };
    from = to;
    return handled(storeBatch(users, batch, checkpoint));
  }

  /** Reads one chunk; resolves to whether there was one. */
  async function readNext(): Promise<boolean> {
    const { value, done } = await iterator.next();
    if (done !== true) source.push(value, take);
    else {
      source.end(take);
      beginning?.requireSame();
    }
    return done !== true;
  }

  let reading: Promise<boolean> | undefined = handled(readNext());
  let storing: Promise<readonly ImportOutcome[]> | undefined;
  for (;;) {
    storing ??= storeNext();
    const reads =
      reading !== undefined && waiting.length < IMPORT_BATCH ? [reading.then(isRead, failed)] : [];
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

/** Prevents an unhandled rejection report for a promise that is awaited later. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

async function storeBatch(
  users: ImportRequest['users'],
  batch: readonly ImportEntry[],
  checkpoint: ImportCheckpoint | undefined,
): Promise<readonly ImportOutcome[]> {
  const good = batch.filter(isGood);
  const isNothing = good.length === 0 && checkpoint === undefined;
  const ids = isNothing
    ? []
    : await users.importUsers(
        good.map(({ user }) => user),
        checkpoint,
      );
  let nth = 0;
  return batch.map((entry) => {
    if (!isGood(entry)) return entry;
    const id = ids[nth++];
    return id === undefined ? emailTakenOn(entry.line) : { line: entry.line, id };
  });
}

function isGood(entry: ImportEntry): entry is GoodLine {
  return 'user' in entry;
}

/** The refusal of a line whose email another user has. */
function emailTakenOn(line: number): BadLine {
  return { line, code: 'EMAIL_TAKEN', reason: 'Another user has this email' };
}

/**
 * Stores all lines of an import in one transaction, or none. Resolves to the outcomes of all lines, or of the
 * refused ones only. Fails as `importUsers` does, and with ImportError if the transaction would be too large.
 */
export async function importTransaction(request: ImportRequest): Promise<readonly ImportOutcome[]> {
  const { users, position } = request;
  const beginning = position && new ImportBeginning(position);
  const entries = await readEntries(request, beginning);
  const refused = entries.filter((entry): entry is BadLine => !isGood(entry));
  if (refused.length > 0) return refused;
  const good = entries.filter(isGood);
  const last = entries.at(-1)?.line;
  if (last === undefined) return [];
  const checkpoint = position &&
    beginning && { key: position.key, from: position.line, to: last, digest: beginning.extend(entries) };
  const stored = await users.importAll(
    good.map(({ user }) => user),
    checkpoint,
  );
  if ('taken' in stored) return [emailTakenOn(good[stored.taken]?.line ?? last)];
  return good.map(({ line }, i) => ({ line, id: stored.ids[i] ?? 0 }));
}

async function readEntries(
  { chunks, format, maxBytes = Number.POSITIVE_INFINITY }: ImportRequest,
  beginning: ImportBeginning | undefined,
): Promise<readonly ImportEntry[]> {
  const source = new EntrySource(format, Math.min(maxBytes, MAX_TRANSACTION.bytes));
  const entries: ImportEntry[] = [];
  const take = (entry: ImportEntry) => {
    if (beginning?.passes(entry) === true) return;
    if (entries.push(entry) <= MAX_TRANSACTION.users) return;
    const most = MAX_TRANSACTION.users.toLocaleString('en-US');
    throw new ImportError('IMPORT_TOO_LARGE', `One transaction takes at most ${most} users`, entry.line);
  };
  for await (const chunk of chunks) source.push(chunk, take);
  source.end(take);
  beginning?.requireSame();
  return entries;
}

/** Users per commit of an import: few enough to hold SQLite's single writer for a few milliseconds. */
export const IMPORT_BATCH = 2_000;

/**
 * Maximum size of an import in one transaction, which is held in memory and whose commit holds SQLite's
 * single writer.
 */
const MAX_TRANSACTION = { users: 50_000, bytes: 16 * 1024 * 1024 } as const;

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
export class EntrySource {
  readonly #decoder = new LineDecoder();
  readonly #reader;
  readonly #ends: readonly string[];
  readonly #maxBytes: number;
  readonly #gathered = new GrowingBuffer();
  #bytes = 0;

  constructor(format: ImportFormat, maxBytes: number) {
    this.#ends = ENDS[format];
    this.#reader = entryReader(format);
    this.#maxBytes = maxBytes;
  }

  /** Throws ImportError for an error that makes the rest unreadable. */
  push(chunk: Uint8Array, take: TakeEntry): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#maxBytes) {
      throw new ImportError('IMPORT_TOO_LARGE', `The import is larger than ${this.#maxBytes} bytes`);
    }
    if (this.#gathered.length + chunk.length < GATHERED && !this.#mayEnd(chunk)) {
      this.#gathered.append(chunk);
      return;
    }
    this.#reader.push(this.#decoder.decode(this.#withGathered(chunk)), take);
  }

  /** Throws ImportError. */
  end(take: TakeEntry): void {
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
export function entryReader(format: ImportFormat): EntryReader {
  if (format === 'csv') return new CsvReader();
  return format === 'array' ? new ArrayReader() : new LinesReader();
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
 * never stored would be skipped. It hashes the users, and the codes of refused lines, independently of the
 * format.
 */
export class ImportBeginning {
  readonly #position: ImportPosition;
  readonly #hash = createHash('sha256');
  #isSame = false;

  constructor(position: ImportPosition) {
    this.#position = position;
  }

  /**
   * Adds the next line; returns whether it was stored before. Throws ImportError if the stored lines differ.
   */
  passes(entry: ImportEntry): boolean {
    if (entry.line > this.#position.line) {
      this.requireSame();
      return false;
    }
    this.#hash.update(textOf(entry));
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
  extend(entries: readonly ImportEntry[]): string {
    this.#hash.update(entries.map(textOf).join(''));
    return this.#hash.copy().digest('hex');
  }
}

/** NUL separates the parts, since names and emails cannot contain it. */
function textOf(entry: ImportEntry): string {
  if (!('user' in entry)) return `${entry.line}\0${entry.code}\0`;
  return `${entry.line}\0${entry.user.name}\0${entry.user.email}\0`;
}
