import { isUtf8 } from 'node:buffer';
import { HttpProblem, parseJsonText } from '@portico/transport';
import type { ErrorCode } from '../core/error-codes.ts';
import { ExpectedError } from '../core/errors.ts';

/** A line of an import: a row, or the reason for its refusal. */
export type ImportEntry<Row> = GoodLine<Row> | BadLine;

export interface GoodLine<Row> {
  /** The line on which it begins, from 1; in a JSON array, the number of the element. */
  readonly line: number;
  readonly row: Row;
  /** Length of its text. */
  readonly size: number;
}

/** Why a line is refused. */
export interface Refusal {
  readonly code: ErrorCode;
  readonly reason: string;
  /** Its faults with their places, if there can be several. */
  readonly errors?: readonly object[];
}

export type BadLine = { readonly line: number } & Refusal;

/** What a record contains. */
export type ReadRecord<Row> =
  /** `size` is that of the row with its defaults, in bytes. */
  { readonly row: Row; readonly size?: number } | Refusal;

/** Reads the fields of a CSV record. An empty field is '' if it was quoted, otherwise undefined. */
export type ReadFields<Row> = (fields: readonly (string | undefined)[]) => ReadRecord<Row>;

/** How the records of an import become rows. */
export interface RecordFormat<Row> {
  /** What the rows are called, such as `users`. */
  readonly name: string;
  /** Maximum length of a line, in UTF-16 code units; at least the size of a single create. */
  readonly maxLine: number;
  /** Reads a parsed JSON record. */
  read(record: unknown): ReadRecord<Row>;
  /** Reads the header of a CSV. Throws ImportError. */
  readHeader(names: readonly string[]): ReadFields<Row>;
}

/** Receives the lines of an import in order. */
export type TakeEntry<Row> = (entry: ImportEntry<Row>) => void;

/** Reads the lines of one format from a text in chunks of any size. */
export interface EntryReader<Row> {
  /** Throws ImportError for an error that makes the rest unreadable. */
  push(text: string, take: TakeEntry<Row>): void;
  /** Reads the remaining text. Throws ImportError. */
  end(take: TakeEntry<Row>): void;
}

export function tooLong(line: number, maxLine: number): BadLine {
  return { line, code: 'LINE_TOO_LONG', reason: `The line is longer than ${maxLine} characters` };
}

/**
 * An import cannot continue; the message says why. Lines stored before stay stored, unless it is one
 * transaction.
 */
export class ImportError extends ExpectedError {
  override readonly name = 'ImportError';
  readonly code:
    | 'INVALID_IMPORT'
    | 'IMPORT_TOO_LARGE'
    | 'IMPORT_IN_PROGRESS'
    | 'IMPORT_KEY_REUSED'
    | 'LINE_TOO_LONG';
  /** The line at which it stopped; undefined if no line is to blame. */
  readonly line: number | undefined;

  constructor(code: ImportError['code'], message: string, line?: number) {
    super(message);
    this.code = code;
    this.line = line;
  }
}

/** The error of an import whose position was moved by another one. */
export function importInProgress(): ImportError {
  return new ImportError('IMPORT_IN_PROGRESS', 'Another request or command is importing with the same key');
}

const LINE_FEED = 0x0a;
/** Replaces invalid bytes; decoding valid UTF-8 never yields it. */
const INVALID = '\ud800';
const NOTHING = Buffer.alloc(0);

/**
 * Decodes UTF-8 in chunks. Invalid bytes become a lone surrogate, so that only their line is not well-formed.
 * Drops a byte order mark at the beginning.
 */
export class LineDecoder {
  #rest: Buffer = NOTHING;
  #begun = false;

  decode(chunk: Uint8Array): string {
    const bytes = this.#rest.length === 0 ? bufferOf(chunk) : Buffer.concat([this.#rest, chunk]);
    const end = wholeCharacters(bytes);
    this.#rest = end === bytes.length ? NOTHING : Buffer.from(bytes.subarray(end));
    return this.#decoded(bytes.subarray(0, end));
  }

  /** The text of the remaining bytes, an incomplete character. */
  end(): string {
    return this.#decoded(this.#rest);
  }

  #decoded(bytes: Buffer): string {
    const text = isUtf8(bytes) ? bytes.toString() : linesOf(bytes).map(decodedLine).join('');
    if (this.#begun || text === '') return text;
    this.#begun = true;
    return text.startsWith('\ufeff') ? text.slice(1) : text;
  }
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The end of the last complete character, judged by its first byte. */
function wholeCharacters(bytes: Buffer): number {
  const first = Math.max(0, bytes.length - 4);
  for (let i = bytes.length - 1; i >= first; i--) {
    const byte = bytes[i] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return i + length > bytes.length ? i : bytes.length;
  }
  return bytes.length;
}

/** The lines with their line ends. */
function linesOf(bytes: Buffer): readonly Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < bytes.length; ) {
    const found = bytes.indexOf(LINE_FEED, start);
    const end = found === -1 ? bytes.length : found + 1;
    lines.push(bytes.subarray(start, end));
    start = end;
  }
  return lines;
}

function decodedLine(bytes: Buffer): string {
  return isUtf8(bytes) ? bytes.toString() : bytes.toString().replaceAll('\ufffd', INVALID);
}

/** Reads NDJSON: a JSON object per line. Blank lines are counted and skipped. */
export class LinesReader<Row> implements EntryReader<Row> {
  readonly #format: RecordFormat<Row>;
  /** The beginning of an incomplete line. */
  #begun = '';
  #line = 1;
  /** Whether to skip the rest of a line that is too long. */
  #isSkipping = false;

  constructor(format: RecordFormat<Row>) {
    this.#format = format;
  }

  push(text: string, take: TakeEntry<Row>): void {
    let start = 0;
    for (;;) {
      const end = text.indexOf('\n', start);
      if (end === -1) break;
      this.#endLine(text.slice(start, end), take);
      start = end + 1;
    }
    if (this.#isSkipping) return;
    this.#begun += text.slice(start);
    const { maxLine } = this.#format;
    if (this.#begun.length <= maxLine) return;
    take(tooLong(this.#line, maxLine));
    this.#begun = '';
    this.#isSkipping = true;
  }

  end(take: TakeEntry<Row>): void {
    this.#endLine('', take);
  }

  #endLine(rest: string, take: TakeEntry<Row>): void {
    const text = this.#begun === '' ? rest : this.#begun + rest;
    const isSkipped = this.#isSkipping;
    const line = this.#line++;
    this.#begun = '';
    this.#isSkipping = false;
    if (isSkipped) return;
    const { maxLine } = this.#format;
    if (text.length > maxLine) take(tooLong(line, maxLine));
    else if (text.trim() !== '') take(entryOfJson(this.#format, line, text));
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const CLOSING_BRACKET = 0x5d;

/** Reads the elements of a JSON array. A malformed element fails alone if its brackets are balanced. */
export class ArrayReader<Row> implements EntryReader<Row> {
  readonly #format: RecordFormat<Row>;
  /** Text that is not an element yet. */
  #text = '';
  /** How far `#text` has been scanned. */
  #at = 0;
  #depth = 0;
  #inString = false;
  #nth = 1;
  #state: 'before' | 'inside' | 'behind' = 'before';

  constructor(format: RecordFormat<Row>) {
    this.#format = format;
  }

  push(text: string, take: TakeEntry<Row>): void {
    this.#text += text;
    if (this.#state === 'before') this.#open();
    if (this.#state === 'inside') this.#read(take);
    if (this.#state === 'behind') this.#close();
  }

  end(_take: TakeEntry<Row>): void {
    if (this.#state !== 'behind') throw broken('the array does not end', this.#nth);
  }

  #open(): void {
    const begun = this.#text.trimStart();
    this.#text = begun;
    if (begun === '') return;
    if (!begun.startsWith('[')) throw broken(`it is not a JSON array of ${this.#format.name}`);
    this.#text = begun.slice(1);
    this.#state = 'inside';
  }

  #close(): void {
    if (this.#text.trim() !== '') throw broken('there is text after the array', this.#nth);
    this.#text = '';
  }

  #read(take: TakeEntry<Row>): void {
    const text = this.#text;
    let start = 0;
    let i = this.#at;
    for (; i < text.length; i++) {
      const c = text.charCodeAt(i);
      if (this.#inString) {
        if (c === BACKSLASH) i++;
        else if (c === QUOTE) this.#inString = false;
      } else if (c === QUOTE) this.#inString = true;
      else if (c === 0x7b || c === 0x5b) this.#depth++;
      else if (this.#depth > 0) {
        if (c === 0x7d || c === CLOSING_BRACKET) this.#depth--;
      } else if (c === COMMA || c === CLOSING_BRACKET) {
        this.#take(text.slice(start, i), c === CLOSING_BRACKET, take);
        start = i + 1;
        if (c === CLOSING_BRACKET) {
          this.#state = 'behind';
          break;
        }
      }
    }
    this.#text = text.slice(start);
    // A chunk may end after the backslash of an escape; scanning then resumes in the next chunk.
    this.#at = i - start;
    const { maxLine } = this.#format;
    if (this.#state === 'inside' && this.#text.length > maxLine) {
      throw new ImportError(
        'LINE_TOO_LONG',
        `An element is longer than ${maxLine} characters, or not closed`,
        this.#nth,
      );
    }
  }

  #take(element: string, isLast: boolean, take: TakeEntry<Row>): void {
    // Only an empty array has nothing before its end.
    if (isLast && this.#nth === 1 && element.trim() === '') return;
    take(entryOfJson(this.#format, this.#nth++, element));
  }
}

function broken(what: string, line?: number): ImportError {
  return new ImportError('INVALID_IMPORT', `The import cannot be read: ${what}`, line);
}

/** The entry of a line of JSON, validated like the body of a create. */
function entryOfJson<Row>(format: RecordFormat<Row>, line: number, text: string): ImportEntry<Row> {
  if (!text.isWellFormed()) return invalidUtf8(line);
  try {
    return entryOf(line, format.read(parseJsonText(text, true)), text.length);
  } catch (error) {
    if (!(error instanceof HttpProblem)) throw error;
    return { line, code: error.code as ErrorCode, reason: error.message };
  }
}

/** The entry of a record; `size` is the length of its text, which a row with defaults may exceed. */
export function entryOf<Row>(line: number, record: ReadRecord<Row>, size: number): ImportEntry<Row> {
  return 'row' in record
    ? { line, row: record.row, size: Math.max(size, record.size ?? 0) }
    : { line, ...record };
}

export function invalidUtf8(line: number): BadLine {
  return { line, code: 'INVALID_UTF8', reason: 'The line is not valid UTF-8' };
}
