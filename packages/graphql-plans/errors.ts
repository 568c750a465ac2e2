import { type ExecutionResult, GraphQLError } from 'graphql';
import type { ErrorCode } from '../../src/core/error-codes.ts';
import { StoreUnavailableError } from '../../src/core/errors.ts';

/**
 * Replaces what the program threw by "Internal server error", or by "Service Unavailable" with the code of the 503 that
 * REST would answer; what GraphQL itself or a resolver says on purpose (a GraphQLError, of any copy of GraphQL.js) stays.
 * `onMasked` gets the error that is hidden.
 */
export function maskErrors(result: ExecutionResult, onMasked: (error: Error) => void): ExecutionResult {
  if (result.errors === undefined) return result;
  return { ...result, errors: result.errors.map((error) => mask(error, onMasked)) };
}

function mask(error: GraphQLError, onMasked: (error: Error) => void): GraphQLError {
  const { originalError } = error;
  if (originalError == null || isKind<GraphQLError>(originalError, 'Error')) return error;
  onMasked(originalError);
  const [message, code] = maskOf(originalError);
  return new GraphQLError(message, {
    ...(error.nodes && { nodes: error.nodes }),
    ...(error.path && { path: error.path }),
    extensions: { code },
  });
}

/** What clients are told in the place of an error of the program. */
export function maskOf(error: unknown): readonly [message: string, code: ErrorCode] {
  return error instanceof StoreUnavailableError
    ? ['Service Unavailable', error.code]
    : ['Internal server error', 'INTERNAL_SERVER_ERROR'];
}

/** Whether a value is of a class of GraphQL.js, whichever copy it is from: `Schema` stands for GraphQLSchema. */
export function isKind<T>(value: unknown, name: string): value is T {
  return Object.prototype.toString.call(value) === `[object GraphQL${name}]`;
}
