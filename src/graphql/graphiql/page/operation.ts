import type { DocumentNode, OperationDefinitionNode } from 'graphql';

/** What GraphiQL asks to be executed. */
export interface Operation {
  readonly query: string;
  readonly operationName?: string;
  readonly variables?: Record<string, unknown>;
}

/** What GraphiQL passes with the operation. */
export interface FetcherOptions {
  /** From the headers editor. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The parsed query; absent while it does not parse. */
  readonly documentAST?: DocumentNode | undefined;
}

/** Whether the operation that is to run, the only one or the one with the given name, is a subscription. */
export function isSubscription({ operationName }: Operation, { documentAST }: FetcherOptions = {}): boolean {
  const operations =
    documentAST?.definitions.filter(
      (node): node is OperationDefinitionNode => node.kind === 'OperationDefinition',
    ) ?? [];
  const named = operations.find(({ name }) => name?.value === operationName);
  return (named ?? operations[0])?.operation === 'subscription';
}

/** A result that GraphiQL shows where the real one would stand. */
export function failure(message: string): object {
  return { errors: [{ message }] };
}

/** The message of a request that got no response. */
export const UNREACHABLE = 'The server cannot be reached. Check that it runs, then try again.';
