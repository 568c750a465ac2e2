import type { ErrorCode } from '../../core/error-codes.ts';
import { parseJsonText } from '../../http/body/json-body.ts';
import { HttpProblem } from '../../http/problem.ts';
import { readNewUser, userProblem } from '../new-user.ts';
import type { ImportEntry } from './import-entry.ts';

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
