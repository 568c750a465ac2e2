import type { FastifyInstance } from 'fastify';
import { refuseFromOtherSite } from '../../http/cross-site.ts';
import { HttpProblem } from '../../http/problem.ts';
import type { EventStreams } from './event-streams.ts';
import { type LiveSources, readPosition, sendLive, TOPICS } from './live.ts';

const WRONG_TOPIC = new HttpProblem(400, 'CONSOLE_TOPIC', `topics has to name some of ${TOPICS.join(', ')}`);

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
      streams.open(reply, (stream) => sendLive(stream, topics, position, sources));
    },
  );
}
