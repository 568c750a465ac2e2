import { isUtf8 } from 'node:buffer';
import type { ErrorCode } from '../core/error-codes.ts';
import { ExpectedError } from '../core/errors.ts';
import type { NewUser } from './user.ts';

/** A line of an import: a user, or the reason for its refusal. */
export type ImportEntry = GoodLine | BadLine;

export interface GoodLine {
  /** The line on which it begins, from 1; in a JSON array, the number of the element. */
  readonly line: number;
  readonly user: NewUser;
}

export interface BadLine {
  readonly line: number;
  readonly code: ErrorCode;
  readonly reason: string;
}

/** Receives the lines of an import in order. */
export type TakeEntry = (entry: ImportEntry) => void;

/** Reads the lines of one format from a text in chunks of any size. */
export interface EntryReader {
  /** Throws ImportError for an error that makes the rest unreadable. */
  push(text: string, take: TakeEntry): void;
  /** Reads the remaining text. Throws ImportError. */
  end(take: TakeEntry): void;
}

/** Maximum length of a line, in UTF-16 code units; at least the size of a single create. */
export const MAX_LINE = 64 * 1024;

export function tooLong(line: number): BadLine {
  return { line, code: 'LINE_TOO_LONG', reason: `The line is longer than ${MAX_LINE} characters` };
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
