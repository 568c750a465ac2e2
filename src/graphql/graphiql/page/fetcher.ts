import type { DocumentNode, OperationDefinitionNode } from 'graphql';
import { createClient } from 'graphql-sse';

const JSON_TYPES = 'application/graphql-response+json, application/json';

/**
 * Runs an operation for GraphiQL: a query or a mutation returns its result, a subscription an iterator of
 * results. Never fails: other responses become an error in the result.
 */
export function runOperation(endpoint: string) {
  return (operation: Operation, options?: FetcherOptions): unknown =>
    isSubscription(operation, options)
      ? streamOperation(endpoint, operation, options)
      : postOperation(endpoint, operation, options);
}

async function postOperation(
  endpoint: string,
  operation: Operation,
  options?: FetcherOptions,
): Promise<unknown> {
  let response: Response | undefined;
  try {
    response = await fetch(endpoint, {
      method: 'POST',
      headers: { accept: JSON_TYPES, 'content-type': 'application/json', ...options?.headers },
      body: JSON.stringify(operation),
    });
    // The status is ignored: a GraphQL result describes its errors itself.
    return await response.json();
  } catch {
    return failure(
      response === undefined
        ? UNREACHABLE
        : `The server answered ${response.status} ${response.statusText} instead of JSON.`,
    );
  }
}

/** An operation that GraphiQL runs. */
interface Operation {
  readonly query: string;
  readonly operationName?: string;
  readonly variables?: Record<string, unknown>;
}

/** Options that GraphiQL passes with an operation. */
interface FetcherOptions {
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
function failure(message: string): object {
  return { errors: [{ message }] };
}

/** The message for a request without a response. */
const UNREACHABLE = 'The server cannot be reached. Check that it is running, then try again.';

/**
 * Runs a subscription and returns its results, until it completes or is cancelled. Never fails: failures
 * become an error in a result.
 */
function streamOperation(
  endpoint: string,
  operation: Operation,
  { headers = {} }: FetcherOptions = {},
): AsyncIterableIterator<unknown> {
  /** The message for a failure at the current stage of the request. */
  let problem = UNREACHABLE;
  const fetchFn = async (url: string, request: RequestInit): Promise<Response> => {
    const response = await fetch(url, request);
    if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) {
      problem = `The server answered ${response.status} ${response.statusText} instead of an event stream.`;
      throw new Error(problem);
    }
    problem = 'The server closed the connection. Run the subscription again to continue.';
    return response;
  };
  const client = createClient({ url: endpoint, headers, fetchFn, retryAttempts: 0 });
  const results = client.iterate(operation);
  return {
    next: () => results.next().catch(() => ({ value: failure(problem), done: false })),
    async return() {
      // Ends the pending read.
      client.dispose();
      return { value: undefined, done: true };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
