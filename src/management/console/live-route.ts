import type { FastifyInstance, FastifyReply } from 'fastify';
import { refuseFromOtherSite } from '../../http/cross-site.ts';
import type { EventStreams } from '../../http/event-stream/event-streams.ts';
import { HttpProblem } from '../../http/problem.ts';
import { type LiveSources, readPosition, type SendEvent, sendLive, TOPICS } from './live.ts';

const MAX_STREAMS = 32;
/** A page that reads nothing is cut at so many bytes; it connects again and goes on where it was. */
const MAX_WAITING = 1024 * 1024;
const HEADERS = { 'x-content-type-options': 'nosniff' } as const;

const WRONG_TOPIC = new HttpProblem(400, 'CONSOLE_TOPIC', `topics has to name some of ${TOPICS.join(', ')}`);
const TOO_MANY = new HttpProblem(503, 'CONSOLE_STREAMS', 'Too many consoles are open', {
  headers: { 'retry-after': '10' },
});

/** Adds the route of the console's event stream: `/live?topics=history,log`. */
export function addLiveRoute(scope: FastifyInstance, streams: EventStreams, sources: LiveSources): void {
  scope.get<{ Querystring: { topics?: unknown; after?: unknown } }>(
    '/live',
    { exposeHeadRoute: false },
    (request, reply) => {
      refuseFromOtherSite('Event streams', request);
      const { topics: given, after } = request.query;
      const wanted = typeof given === 'string' ? given.split(',') : [];
      const topics = TOPICS.filter((topic) => wanted.includes(topic));
      if (topics.length === 0 || topics.length !== wanted.length) throw WRONG_TOPIC;
      // A browser sends the header when it connects again; a page that begins anew knows its place from before.
      const last = request.headers['last-event-id'] ?? after;
      const position = readPosition(typeof last === 'string' ? last : undefined);
      stream(streams, reply, (send) => sendLive(send, topics, position, sources));
    },
  );
}

/** Opens a stream; `start` returns what ends its sources. */
function stream(streams: EventStreams, reply: FastifyReply, start: (send: SendEvent) => Disposable): void {
  if (streams.size >= MAX_STREAMS) throw TOO_MANY;
  let source: Disposable | undefined;
  const opened = streams.open(reply, {
    headers: HEADERS,
    maxBehind: MAX_WAITING,
    onEnd: () => source?.[Symbol.dispose](),
  });
  opened.push('retry: 2000\n\n');
  if (!opened.isOpen) return;
  source = start((event, data, id) => opened.push(`event: ${event}\nid: ${id}\ndata: ${data}\n\n`));
}
