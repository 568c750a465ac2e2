import { type FetcherOptions, failure, type Operation, send, UNREACHABLE } from './operation.ts';
import { readEvents } from './read-events.ts';

const EVENT_STREAM = 'text/event-stream';

/**
 * Runs a subscription and gives back its results, until it is complete or they are no longer wanted.
 * Never fails: what goes wrong becomes an error in a result.
 */
export function streamOperation(
  endpoint: string,
  operation: Operation,
  { headers }: FetcherOptions = {},
): AsyncIterableIterator<unknown> {
  const abort = new AbortController();
  const results = readResults(() =>
    send(endpoint, operation, EVENT_STREAM, { headers, signal: abort.signal }),
  );
  return {
    next: async () => {
      try {
        return await results.next();
      } catch {
        return abort.signal.aborted
          ? { value: undefined, done: true }
          : { value: failure('The server broke off. Run the subscription again to go on.'), done: false };
      }
    },
    return() {
      // Ends the pending read.
      abort.abort();
      return Promise.resolve({ value: undefined, done: true });
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

async function* readResults(request: () => Promise<Response>): AsyncGenerator<unknown, void> {
  let response: Response | undefined;
  try {
    response = await request();
  } catch {
    yield failure(UNREACHABLE);
    return;
  }
  const { status, statusText, headers, body } = response;
  if (body === null || headers.get('content-type')?.startsWith(EVENT_STREAM) !== true) {
    yield failure(`The server answered ${status} ${statusText} without events.`);
    return;
  }
  for await (const { name, data } of readEvents(body)) {
    if (name === 'complete') return;
    if (name === 'next') yield JSON.parse(data);
  }
  throw new Error('The stream has no end.');
}
