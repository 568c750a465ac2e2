import { type DocumentNode, type ExecutionResult, execute, GraphQLError, type GraphQLSchema } from 'graphql';
import type { MaybePromise } from '../../../src/core/scheduler.ts';

export interface Asked {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operationName: string;
  readonly variables: Record<string, unknown>;
  readonly context: unknown;
}

/**
 * What GraphQL.js gives, with one exception: where it blames a value that does not fit its type in a message of its
 * own, which quotes the value, that is the program's fault like all others and no message for the client.
 */
export function reference({
  schema,
  document,
  operationName,
  variables,
  context,
}: Asked): MaybePromise<ExecutionResult> {
  const result = execute({
    schema,
    document,
    operationName,
    variableValues: variables,
    contextValue: context,
    options: { maxCoercionErrors: 10 },
  });
  return result instanceof Promise ? result.then(blamed) : blamed(result);
}

/**
 * Waits for what GraphQL.js does. It leaves errors of a stream unhandled when the result is out before the stream has
 * ended, which would end the test; ours has to handle its own.
 */
export async function leniently<T>(wait: () => Promise<T>): Promise<T> {
  const strict = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', () => {});
  try {
    return await wait();
  } finally {
    process.removeAllListeners('unhandledRejection');
    for (const listener of strict) process.on('unhandledRejection', listener);
  }
}

const FAULTS =
  /^(?:Expected Iterable, but|Expected value of type "\w+" but got|Abstract type "|Runtime Object type "|(?:String|Int|Float|ID|Boolean) cannot represent|Enum "\w+" cannot represent)/;

function blamed(result: ExecutionResult): ExecutionResult {
  if (result.errors === undefined) return result;
  return {
    ...result,
    errors: result.errors.map((error) =>
      FAULTS.test(error.message)
        ? new GraphQLError('', {
            ...(error.nodes && { nodes: error.nodes }),
            ...(error.path && { path: error.path }),
            originalError: new Error(error.message),
          })
        : error,
    ),
  };
}
