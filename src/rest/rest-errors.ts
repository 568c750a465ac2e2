import type { ErrorFormat } from '../http/error-format.ts';
import { reasonPhrase } from '../http/problem.ts';
import { failure, JSON_TYPE } from './envelope.ts';

/** What a write that fails says (contract 7). */
const WRITE_FAILED: Readonly<Record<string, string>> = {
  POST: 'Failed to create user',
  PUT: 'Failed to update user',
  DELETE: 'Failed to delete user',
};

/** Every refusal of this door is the contract's error envelope. */
export const restErrors: ErrorFormat = {
  contentType: JSON_TYPE,
  body: (problem, request) => failure(WRITE_FAILED[request?.method ?? ''] ?? reasonPhrase(problem.status)),
};
