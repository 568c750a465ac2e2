import {
  addFields,
  EVENT_STREAM_HEADERS,
  type EventFormat,
  type EventStreams,
  exchangeOf,
  HttpProblem,
  prefersEventStream,
} from '@portico/transport';
import type { FastifyReply, FastifyRequest, preHandlerHookHandler } from 'fastify';
import type { CorsPolicy } from '../access/cors.ts';
import type { ApiGate } from '../access/gate.ts';
import { whileValid } from '../access/guarded.ts';
import { quote } from '../core/text.ts';
import { refuseFromOtherSite } from '../http/cross-site.ts';
import {
  type EventPosition,
  EventsGoneError,
  type UserEvent,
  type UserEventFeed,
} from '../relations/events.ts';
import { JSON_TYPE } from './rest-errors.ts';

/** Time after which a client connects again, in milliseconds. */
const RETRY = 2_000;
/** Names the last event where a client cannot set Last-Event-ID: an EventSource that begins. */
const PARAMETER = 'lastEventId';

/** The header fields of the stream. */
export const CHANGES_HEADERS = { ...EVENT_STREAM_HEADERS, vary: 'accept' };

interface ChangeFeedOptions {
  readonly feed: UserEventFeed;
  readonly streams: EventStreams;
  /** Maximum streams at the same time. */
  readonly maxStreams: number;
  /** What has let the requests in; a stream ends with the credentials of its caller. */
  readonly gate: ApiGate | undefined;
  /** Whose pages may follow the changes; undefined where that is nobody's. */
  readonly cors: CorsPolicy | undefined;
}

/** Whether a request for the list asks for its changes instead. */
export function asksForChanges({ headers }: FastifyRequest): boolean {
  return prefersEventStream(headers.accept, JSON_TYPE);
}

/** GET /users as an event stream: what is done to users from now on, or behind the event that the client names. */
export function streamChanges({
  feed,
  streams,
  maxStreams,
  gate,
  cors,
}: ChangeFeedOptions): preHandlerHookHandler {
  let open = 0;
  return (request, reply, done) => {
    if (!asksForChanges(request)) return done();
    stream(request, reply).catch(done);
  };

  async function stream(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    refuseFromOtherSite('Event streams', request, cors);
    const from = lastEvent(request);
    if (open >= maxStreams) throw TOO_MANY_STREAMS;
    open++;
    try {
      const events = await feed.follow(from).catch((error: unknown) => {
        throw error instanceof EventsGoneError ? new HttpProblem(410, error.code, error.message) : error;
      });
      addFields(reply, CHANGES_HEADERS);
      const allowed = whileValid(events, gate, exchangeOf(request));
      await streams.send(reply, allowed, formatFrom(events.start));
    } finally {
      open--;
    }
  }
}

const TOO_MANY_STREAMS = new HttpProblem(503, 'TOO_MANY_STREAMS', 'Too many clients follow the users', {
  headers: { 'retry-after': '5' },
});

/** The format of a stream that begins behind an event: the client knows its id before anything happens. */
function formatFrom(start: EventPosition): EventFormat<readonly UserEvent[]> {
  return {
    waits: true,
    begin: `retry: ${RETRY}\nid: ${idOf(start)}\n\n`,
    text: (events) => events.map(textOf).join(''),
    // Clients of a process that stops do not come back in the same moment.
    end: () => `retry: ${Math.round(RETRY * (0.5 + Math.random()))}\n\n`,
  };
}

function textOf(event: UserEvent): string {
  return `event: user.${event.type}\nid: ${idOf(event)}\ndata: ${event.json}\n\n`;
}

function idOf({ position, at }: EventPosition): string {
  return `${position}.${at}`;
}

/** The event that the client has seen last; undefined when it names none. Throws HttpProblem. */
function lastEvent({ headers, query }: FastifyRequest): EventPosition | undefined {
  const parameters = query as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(parameters)) {
    if (name === PARAMETER) continue;
    const message = `An event stream takes no parameter ${quote(name)}, only ${PARAMETER}`;
    throw new HttpProblem(400, 'UNKNOWN_PARAMETER', message);
  }
  // A client that comes back sends the header, and the parameter as it was when it began.
  const id = headers['last-event-id'] ?? parameters[PARAMETER] ?? '';
  if (id === '') return undefined;
  const [, position, at] = /^(\d{1,16})\.(\d{1,16})$/.exec(String(id)) ?? [];
  if (position === undefined) {
    throw new HttpProblem(400, 'INVALID_EVENT_ID', 'Last-Event-ID takes the id of an event of this list');
  }
  return { position: Number(position), at: Number(at) };
}
