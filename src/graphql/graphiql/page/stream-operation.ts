import { createClient } from 'graphql-sse';
import { type FetcherOptions, failure, type Operation, UNREACHABLE } from './operation.ts';

/**
 * Runs a subscription and gives back its results, until it is complete or they are no longer wanted.
 * Never fails: what goes wrong becomes an error in a result.
 */
export function streamOperation(
  endpoint: string,
  operation: Operation,
  { headers = {} }: FetcherOptions = {},
): AsyncIterableIterator<unknown> {
  /** What a failure means, by how far the request has come. */
  let problem = UNREACHABLE;
  const fetchFn = async (url: string, request: RequestInit): Promise<Response> => {
    const response = await fetch(url, request);
    if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) {
      problem = `The server answered ${response.status} ${response.statusText} without events.`;
      throw new Error(problem);
    }
    problem = 'The server broke off. Run the subscription again to go on.';
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
