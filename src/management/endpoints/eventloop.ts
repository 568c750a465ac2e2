import { type EventLoopReading, EventLoopWindows } from '../../observability/runtime/event-loop-windows.ts';
import type { Endpoint } from '../endpoint.ts';
import { formatDuration } from '../iso-duration.ts';
import { jsonBytes, replyJson } from '../json-reply.ts';
import { addReadRoute } from '../read-route.ts';

/** The eventloop endpoint: how busy the loop is and how late with what is due. It measures only when exposed. */
export function eventLoopEndpoint(): Endpoint {
  return {
    id: 'eventloop',
    about: 'How busy the event loop is, and how late with what is due.',
    links: [{ name: 'eventloop', path: '/eventloop', templated: false }],
    addRoutes(scope) {
      const windows = new EventLoopWindows();
      scope.addHook('onClose', async () => windows[Symbol.dispose]());
      addReadRoute(scope, '/eventloop', (_request, reply) =>
        replyJson(reply, jsonBytes(describe(windows.read()))),
      );
    },
  };
}

function describe({ windowMs, utilization, delay }: EventLoopReading) {
  return { window: formatDuration(windowMs), utilization, delay: { unit: 'milliseconds', ...delay } };
}
