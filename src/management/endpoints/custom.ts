import { HttpProblem, type Reply, type RequestContext } from '@portico/transport';
import { isThenable, whenReady } from '../../core/scheduler.ts';
import {
  type CustomEndpoint,
  type EndpointParameter,
  type EndpointWrite,
  parseParameter,
} from '../config.ts';
import { COMMON_HEADERS, jsonTextReply, NO_CONTENT, NOT_FOUND } from '../management-errors.ts';
import type { ManagementEndpoint, Operations, WriteOperation } from '../operations.ts';

export type { CustomEndpoint } from '../config.ts';

const TEXT = 'text/plain; charset=utf-8';
const BYTES = 'application/octet-stream';

/** An endpoint of the configuration or the embedding program. Each operation has `timeoutMs` to answer. */
export function customEndpoint(endpoint: CustomEndpoint, timeoutMs = 10_000): ManagementEndpoint {
  const { id, query = [] } = endpoint;
  const segment = parseParameter(endpoint.path);
  const declared = query.flatMap((name) => parseParameter(name) ?? []);
  const bounded = (operation: ((request: EndpointWrite) => unknown) | undefined) =>
    operation && boundedOperation(`The endpoint ${id}`, operation.bind(endpoint), timeoutMs);
  const [read, write, remove] = [endpoint.read, endpoint.write, endpoint.delete].map(bounded);

  /** The operations of the path whose last parameter is `last`, or of the path without parameters. */
  function operationsAt(last: EndpointParameter | undefined): Operations {
    const answers = (call: typeof read, missing: 404 | 204): WriteOperation | undefined =>
      call &&
      ((ctx, body) => {
        const request = { path: pathOf(ctx, last), query: queryOf(ctx, declared) };
        const answer = call(missing === 404 ? (request as EndpointWrite) : { ...request, body });
        return whenReady(answer, (settled) => replyOf(ctx, settled, missing, id));
      });
    const get = answers(read, 404);
    return {
      get: get && ((ctx) => get(ctx, undefined)),
      post: answers(write, 204),
      delete: answers(remove, 204),
    };
  }

  return {
    id,
    about: 'A custom endpoint of this service.',
    routes: () => ({
      ...(segment?.optional !== false && { [`/${id}`]: operationsAt(undefined) }),
      ...(segment !== undefined && { [`/${id}/{${segment.name}}`]: operationsAt(segment) }),
    }),
  };
}

function pathOf({ param }: RequestContext, last: EndpointParameter | undefined): Record<string, string> {
  if (last === undefined) return {};
  // The router matches an empty parameter, but a trailing slash makes another path.
  if (param === '') throw NOT_FOUND;
  return { [last.name]: param };
}

/** The declared query parameters. Throws HttpProblem. */
function queryOf({ query }: RequestContext, declared: readonly EndpointParameter[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const { name, optional } of declared) {
    const value = query[name];
    if (typeof value === 'string') found[name] = value;
    else if (value !== undefined) throw badRequest(`The parameter ${name} is given more than once`);
    else if (!optional) throw badRequest(`The parameter ${name} is missing`);
  }
  return found;
}

function badRequest(message: string): HttpProblem {
  return new HttpProblem(400, 'PARAMETER', message);
}

// CONTRACT.md#management-endpoints: a string returned by the read operation is the reply.
function replyOf(ctx: RequestContext, answer: unknown, missing: 404 | 204, id: string): Reply {
  if (typeof answer === 'string') return { status: 200, type: TEXT, body: answer, headers: COMMON_HEADERS };
  if (answer instanceof Uint8Array) {
    return { status: 200, type: BYTES, body: Buffer.from(answer), headers: COMMON_HEADERS };
  }
  if (answer !== undefined && answer !== null) return jsonTextReply(ctx, json(answer, id));
  if (missing === 404) throw NOT_FOUND;
  return NO_CONTENT;
}

function json(answer: unknown, id: string): string {
  let text: string | undefined;
  let cause: unknown = new TypeError(`it returned a ${typeof answer}`);
  try {
    text = JSON.stringify(answer);
  } catch (error) {
    cause = error;
  }
  if (text !== undefined) return text;
  throw new CustomEndpointError(`The endpoint ${id} returned a value that JSON cannot represent`, { cause });
}

/** An operation of a custom endpoint failed. The cause goes to the log, never to the client. */
class CustomEndpointError extends Error {
  override readonly name = 'CustomEndpointError';
  readonly code = 'CUSTOM_ENDPOINT';
}

/**
 * Bounds an operation: its failure becomes a CustomEndpointError, an answer after `timeoutMs` an HttpProblem
 * with status 503. It is not called again until a late call has ended, so that hanging calls do not pile up.
 * `name` is for messages.
 */
function boundedOperation<R>(
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
