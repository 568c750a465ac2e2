import { type EventLoopReading, EventLoopWindows } from '../../observability/runtime/event-loop-windows.ts';
import { formatDuration } from '../iso-duration.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import { jsonReply } from '../replies.ts';

/** The eventloop endpoint: utilisation and delay of the event loop. It measures only when exposed. */
export function eventLoopEndpoint(): ManagementEndpoint {
  return {
    id: 'eventloop',
    about: 'How busy the event loop is, and how late its timers are.',
    routes(scope) {
      const windows = new EventLoopWindows();
      scope.addHook('onClose', async () => windows[Symbol.dispose]());
      return { '/eventloop': { get: (exchange) => jsonReply(exchange, describe(windows.read())) } };
    },
  };
}

function describe({ windowMs, utilization, delay }: EventLoopReading) {
  return { window: formatDuration(windowMs), utilization, delay: { unit: 'milliseconds', ...delay } };
}
