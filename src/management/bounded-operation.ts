import { isThenable } from '../core/maybe-promise.ts';
import { HttpProblem } from '../http/problem.ts';

/** An operation of a custom endpoint failed; the cause is for the log, never for the client. */
export class CustomEndpointError extends Error {
  override readonly name = 'CustomEndpointError';
  readonly code = 'CUSTOM_ENDPOINT';
}

/**
 * Bounds an operation: its failure becomes a CustomEndpointError, an answer that takes longer than `timeoutMs` an
 * HttpProblem of status 503. Until a late one has ended it is not called again, so that what hangs does not pile up.
 * `name` is for messages.
 */
export function boundedOperation<R>(
  name: string,
  operation: (request: R) => unknown,
  timeoutMs: number,
): (request: R) => unknown {
  let hanging = 0;
  const failure = (cause: unknown) => new CustomEndpointError(`${name} failed`, { cause });

  function wait(answer: PromiseLike<unknown>): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      hanging++;
      reject(timeout(`${name} did not answer within ${timeoutMs} ms`));
    }, timeoutMs);
    const ended = Promise.resolve(answer).finally(() => {
      clearTimeout(timer);
      if (late) hanging--;
    });
    ended.then(resolve, (cause: unknown) => reject(failure(cause)));
    return promise;
  }

  return (request) => {
    if (hanging > 0) throw timeout(`${name} is still hanging`);
    let answer: unknown;
    try {
      answer = operation(request);
    } catch (cause) {
      throw failure(cause);
    }
    return isThenable(answer) ? wait(answer) : answer;
  };
}

function timeout(message: string): HttpProblem {
  return new HttpProblem(503, 'CUSTOM_ENDPOINT_TIMEOUT', message);
}
