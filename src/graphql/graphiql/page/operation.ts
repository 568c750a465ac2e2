import type { DocumentNode, OperationDefinitionNode } from 'graphql';

/** An operation that GraphiQL runs. */
export interface Operation {
  readonly query: string;
  readonly operationName?: string;
  readonly variables?: Record<string, unknown>;
}

/** Options that GraphiQL passes with an operation. */
export interface FetcherOptions {
  /** From the headers editor. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The parsed query; absent while it does not parse. */
  readonly documentAST?: DocumentNode | undefined;
}

/** Whether the operation to run, which is the named one or else the first, is a subscription. */
export function isSubscription({ operationName }: Operation, { documentAST }: FetcherOptions = {}): boolean {
  const operations =
    documentAST?.definitions.filter(
      (node): node is OperationDefinitionNode => node.kind === 'OperationDefinition',
    ) ?? [];
  const named = operations.find(({ name }) => name?.value === operationName);
  return (named ?? operations[0])?.operation === 'subscription';
}

/** A result with an error, for GraphiQL to show. */
export function failure(message: string): object {
  return { errors: [{ message }] };
}

/** The message for a request without a response. */
export const UNREACHABLE = 'The server cannot be reached. Check that it is running, then try again.';
