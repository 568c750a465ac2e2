import { requestFields } from '../../core/trace.ts';
import type { ListedRoute } from '../../http/routes.ts';
import { EventLoopWindows } from '../../telemetry/runtime.ts';
import { jsonReply } from '../management-errors.ts';
import type { ManagementEndpoint } from '../operations.ts';
import { formatDuration } from './recent.ts';

/** The eventloop endpoint: utilisation and delay, measured only if the endpoint is exposed. */
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

function describe({ windowMs, utilization, delay }: ReturnType<EventLoopWindows['read']>) {
  return { window: formatDuration(windowMs), utilization, delay: { unit: 'milliseconds', ...delay } };
}

/** A function for each door, by name, that lists its routes. */
type Mappings = ReadonlyMap<string, () => readonly ListedRoute[]>;

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
