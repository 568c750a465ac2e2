import { HttpProblem, requestFields } from '@portico/transport';
import { isThenable } from '../../core/maybe-promise.ts';
import type { ListedRoute } from '../../http/routes.ts';
import { type EventLoopReading, EventLoopWindows } from '../../telemetry/runtime.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import { jsonReply } from '../management-errors.ts';
import { formatDuration } from './recent.ts';

/**
 * The eventloop endpoint: utilisation and delay of the event loop, measured only if the endpoint is exposed.
 */
export function eventLoopEndpoint(): ManagementEndpoint {
  return {
    id: 'eventloop',
    about: 'How busy the event loop is, and how late its timers are.',
    routes(scope) {
      const windows = new EventLoopWindows();
      scope.addHook('onClose', async () => windows[Symbol.dispose]());
      return { '/eventloop': { get: (ctx) => jsonReply(ctx, describe(windows.read())) } };
    },
  };
}

function describe({ windowMs, utilization, delay }: EventLoopReading) {
  return { window: formatDuration(windowMs), utilization, delay: { unit: 'milliseconds', ...delay } };
}

/** A function for each door, by name, that lists its routes. */
export type Mappings = ReadonlyMap<string, () => readonly ListedRoute[]>;

/** The mappings endpoint: every path of every door, in Actuator's format. */
export function mappingsEndpoint(application: string, mappings: Mappings): ManagementEndpoint {
  function describe() {
    const doors = Array.from(mappings, ([door, routes]) => [
      door,
      routes().map((route) => describeRoute(door, route)),
    ]);
    const all = { dispatcherServlets: Object.fromEntries(doors), servletFilters: [], servlets: [] };
    return { contexts: { [application]: { mappings: all } } };
  }

  return {
    id: 'mappings',
    about: 'Every path that each door serves.',
    routes: () => ({ '/mappings': { get: (ctx) => jsonReply(ctx, describe()) } }),
  };
}

function describeRoute(door: string, { path, methods }: ListedRoute) {
  return {
    handler: door,
    predicate: `{${methods.join(', ')} [${path}]}`,
    details: {
      handlerMethod: { className: door, name: path, descriptor: '' },
      requestMappingConditions: {
        consumes: [],
        headers: [],
        methods,
        params: [],
        patterns: [path],
        produces: [],
      },
    },
  };
}

/** The shutdown endpoint: a POST stops the process like SIGTERM, after its own reply. */
export function shutdownEndpoint(shutDown: () => void): ManagementEndpoint {
  return {
    id: 'shutdown',
    about: 'Stops this service gracefully.',
    ownAccess: 'none',
    routes: () => ({
      '/shutdown': {
        post(ctx) {
          ctx.log.warn(requestFields(ctx), 'shutdown requested');
          // Shuts down even if the client has disconnected before its reply.
          ctx.onClose(shutDown);
          const reply = jsonReply(ctx, { message: 'Shutting down, bye...' });
          return { ...reply, headers: { ...reply.headers, connection: 'close' } };
        },
      },
    }),
  };
}

/** An operation of a custom endpoint failed. The cause goes to the log, never to the client. */
export class CustomEndpointError extends Error {
  override readonly name = 'CustomEndpointError';
  readonly code = 'CUSTOM_ENDPOINT';
}

/**
 * Bounds an operation: its failure becomes a CustomEndpointError, an answer after `timeoutMs` an HttpProblem
 * with status 503. It is not called again until a late call has ended, so that hanging calls do not pile up.
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
