import { createClient } from 'graphql-sse';
import { type FetcherOptions, failure, type Operation, UNREACHABLE } from './operation.ts';

/**
 * Runs a subscription and returns its results, until it completes or is cancelled. Never fails: failures
 * become an error in a result.
 */
export function streamOperation(
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
