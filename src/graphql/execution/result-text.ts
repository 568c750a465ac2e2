import type { ExecutionResult } from 'graphql';
import { jsonWithLists } from './json-list.ts';

/** Marks a result that holds long lists, for whoever makes its text. */
const LISTS = Symbol('lists');

/** The same result, marked. */
export function withLists(result: ExecutionResult): ExecutionResult {
  return { ...result, [LISTS]: true } as ExecutionResult;
}

/** The JSON of a result; of one with long lists in UTF-8. */
export function resultText(result: ExecutionResult): string | Buffer {
  return LISTS in result ? jsonWithLists(result) : JSON.stringify(result);
}
