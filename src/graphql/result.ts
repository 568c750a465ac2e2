import type { ExecutionResult } from 'graphql';
import { RESULT_TYPES, type ResultType } from './media-type.ts';

/** The status of a result: of a request that did not run 400, but older clients read errors only from a 200. */
export function resultStatus(result: ExecutionResult, type: ResultType): number {
  return 'data' in result || type === RESULT_TYPES.legacy ? 200 : 400;
}

/** The Content-Type header of a result. */
export function resultTypeHeader(type: ResultType): string {
  return `${type}; charset=utf-8`;
}

/** A result as JSON. */
export function resultBody(result: ExecutionResult): string {
  return JSON.stringify(result);
}
