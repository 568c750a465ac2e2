import { type FetcherOptions, failure, isSubscription, type Operation, UNREACHABLE } from './operation.ts';
import { streamOperation } from './stream-operation.ts';

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
