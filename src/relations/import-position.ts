import { createHash } from 'node:crypto';
import { HttpProblem, parseJsonText } from '@portico/transport';
import type { ErrorCode } from '../core/error-codes.ts';
import { type ImportEntry, ImportError } from './import-readers.ts';
import { readNewUser, userProblem } from './user.ts';

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

/** The entry of a line of JSON, validated like the body of a create. */
export function entryOfJson(line: number, text: string): ImportEntry {
  if (!text.isWellFormed()) return invalidUtf8(line);
  try {
    return entryOf(line, parseJsonText(text));
  } catch (error) {
    if (!(error instanceof HttpProblem)) throw error;
    return { line, code: error.code as ErrorCode, reason: error.message };
  }
}

/** The entry of a parsed line. */
export function entryOf(line: number, value: unknown): ImportEntry {
  const user = readNewUser(value);
  if (user !== undefined) return { line, user };
  return { line, code: 'INVALID_USER', reason: userProblem(value) };
}

export function invalidUtf8(line: number): ImportEntry {
  return { line, code: 'INVALID_UTF8', reason: 'The line is not valid UTF-8' };
}
