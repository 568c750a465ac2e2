import type { ErrorCode } from '../../core/error-codes.ts';
import type { NewUser } from '../user.ts';

/** A line of an import: the user on it, or why it has none. */
export type ImportEntry = GoodLine | BadLine;

export interface GoodLine {
  /** Where it begins, from 1 on; of a JSON array the number of the element. */
  readonly line: number;
  readonly user: NewUser;
}

export interface BadLine {
  readonly line: number;
  readonly code: ErrorCode;
  readonly reason: string;
}

/** Receives the lines of an import in their order. */
export type TakeEntry = (entry: ImportEntry) => void;

/** Reads the lines of one format from a text that comes in parts of any size. */
export interface EntryReader {
  /** Throws ImportError for what makes all that follows unreadable. */
  push(text: string, take: TakeEntry): void;
  /** Reads what is left. Throws ImportError. */
  end(take: TakeEntry): void;
}

/** Maximum length of a line, in UTF-16 code units: no less than what a single create takes. */
export const MAX_LINE = 64 * 1024;

export function tooLong(line: number): BadLine {
  return { line, code: 'LINE_TOO_LONG', reason: `The line is longer than ${MAX_LINE} characters` };
}
