/** What GraphiQL asks to be executed. */
interface Operation {
  readonly query: string;
  readonly operationName?: string | null;
  readonly variables?: unknown;
}

interface FetcherOptions {
  /** From the headers editor. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** GraphiQL shows it where the result would stand. */
function failure(message: string): object {
  return { errors: [{ message }] };
}

/**
 * Sends queries and mutations by POST and gives back the result. Never fails: what the server answers
 * instead of JSON becomes an error in the result.
 */
export function postOperation(endpoint: string) {
  return async (operation: Operation, options?: FetcherOptions): Promise<unknown> => {
    let response: Response | undefined;
    try {
      response = await fetch(endpoint, {
        method: 'POST',
        headers: {
          accept: 'application/graphql-response+json, application/json',
          'content-type': 'application/json',
          ...options?.headers,
        },
        body: JSON.stringify(operation),
      });
      // The status does not matter here: a GraphQL result says itself what went wrong.
      return await response.json();
    } catch {
      return failure(
        response === undefined
          ? 'The server cannot be reached. Check that it runs, then try again.'
          : `The server answered ${response.status} ${response.statusText} without JSON.`,
      );
    }
  };
}
