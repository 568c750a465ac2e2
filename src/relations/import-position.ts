import { createHash } from 'node:crypto';
import { HttpProblem, parseJsonText } from '@portico/transport';
import type { ErrorCode } from '../core/error-codes.ts';
import { type ImportEntry, ImportError } from './import-readers.ts';
import { readNewUser, userProblem } from './user.ts';

/** How far an import with a key came. */
export interface ImportPosition {
  /** The line up to which it was stored; 0 for a new one. */
  readonly line: number;
  /** A digest of what stood up to there; undefined for a new one. */
  readonly digest: string | undefined;
}

/** Moves the recorded position of an import, in the commit that stores its users. */
export interface ImportCheckpoint {
  /** The key of the import. */
  readonly key: string;
  /** The line up to which it was recorded; a move from another one stores nothing and fails with ImportError. */
  readonly from: number;
  readonly to: number;
  /** A digest of what stands up to `to`. */
  readonly digest: string;
}

/**
 * What stands at the beginning of an import, up to the line that was read last: the users, and the refusals by their
 * codes, whatever the format. An import that goes on has to begin as the one that was stored under its key, or else
 * lines that nobody has stored would be passed over.
 */
export class ImportBeginning {
  readonly #position: ImportPosition;
  readonly #hash = createHash('sha256');
  #isSame = false;

  constructor(position: ImportPosition) {
    this.#position = position;
  }

  /** Takes the next line; true for one that was stored before. Throws ImportError for another beginning. */
  passes(entry: ImportEntry): boolean {
    if (entry.line > this.#position.line) {
      this.requireSame();
      return false;
    }
    this.#hash.update(textOf(entry));
    return true;
  }

  /** Call it once all lines are read, too: an import that ends before the position is another one. Throws ImportError. */
  requireSame(): void {
    const { line, digest } = this.#position;
    if (this.#isSame || digest === undefined) return;
    if (this.#hash.copy().digest('hex') !== digest) {
      const message = `Another import with this key has stored other lines, up to line ${line}; send this one with a key of its own`;
      throw new ImportError('IMPORT_KEY_REUSED', message);
    }
    this.#isSame = true;
  }

  /** The digest of the beginning with the lines that follow it, which are part of it from now on. */
  extend(entries: readonly ImportEntry[]): string {
    this.#hash.update(entries.map(textOf).join(''));
    return this.#hash.copy().digest('hex');
  }
}

/** No name and no email has a NUL. */
function textOf(entry: ImportEntry): string {
  if (!('user' in entry)) return `${entry.line}\0${entry.code}\0`;
  return `${entry.line}\0${entry.user.name}\0${entry.user.email}\0`;
}

/** What a line gives whose text is JSON, judged as the body of a single create. */
export function entryOfJson(line: number, text: string): ImportEntry {
  if (!text.isWellFormed()) return invalidUtf8(line);
  try {
    return entryOf(line, parseJsonText(text));
  } catch (error) {
    if (!(error instanceof HttpProblem)) throw error;
    return { line, code: error.code as ErrorCode, reason: error.message };
  }
}

/** What a line gives that was read. */
export function entryOf(line: number, value: unknown): ImportEntry {
  const user = readNewUser(value);
  if (user !== undefined) return { line, user };
  return { line, code: 'INVALID_USER', reason: userProblem(value) };
}

export function invalidUtf8(line: number): ImportEntry {
  return { line, code: 'INVALID_UTF8', reason: 'The line is not valid UTF-8' };
}
