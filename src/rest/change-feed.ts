import {
  EventStream,
  eventReply,
  HttpProblem,
  NO_PIECES,
  type Reply,
  type RequestContext,
} from '@portico/transport';
import { refuseFromOtherSite } from '../access/cors.ts';
import { type Guards, whileValid } from '../access/guarded.ts';
import { quote } from '../core/text.ts';
import {
  type EventPosition,
  EventsGoneError,
  type UserEvent,
  type UserEventFeed,
} from '../relations/events.ts';

/** Time after which a client reconnects, in milliseconds. */
const RETRY = 2_000;
/** The query parameter with the last event, for a new EventSource, which cannot set Last-Event-ID. */
const PARAMETER = 'lastEventId';

/** The policy ends a stream when its caller's credentials expire or are revoked. */
interface ChangeFeedOptions extends Guards {
  readonly feed: UserEventFeed;
  /** Maximum concurrent streams. */
  readonly maxStreams: number;
}

/** GET /users as an event stream: changes of users from now on, or after the event that the client names. */
export function changeReplies(options: ChangeFeedOptions): (ctx: RequestContext) => Promise<Reply> {
  const { feed, maxStreams, policy, cors } = options;
  let open = 0;
  return async (ctx) => {
    if (ctx.method === 'HEAD') return eventReply(NO_PIECES, HEADERS);
    refuseFromOtherSite('Event streams', ctx, cors);
    const from = lastEvent(ctx);
    if (open >= maxStreams) throw TOO_MANY_STREAMS;
    open++;
    ctx.onClose(() => open--);
    const events = await feed.follow(from).catch((error: unknown) => {
      throw error instanceof EventsGoneError ? new HttpProblem(410, error.code, error.message) : error;
    });
    return eventReply(streamOf(events.start, whileValid(events, policy, ctx)), HEADERS);
  };
}

const HEADERS = { vary: 'accept' };

const TOO_MANY_STREAMS = new HttpProblem(503, 'TOO_MANY_STREAMS', 'Too many clients follow the users', {
  headers: { 'retry-after': '5' },
});

/**
 * A stream that starts after an event. It sends the event's id first, so the client can resume even if it
 * receives no event.
 */
function streamOf(start: EventPosition, events: AsyncIterable<readonly UserEvent[]>): EventStream {
  return new EventStream(events, {
    waits: true,
    begin: `retry: ${RETRY}\nid: ${idOf(start)}\n\n`,
    text: (batch) => batch.map(textOf).join(''),
    // Spreads the reconnections of a stopping process's clients over time.
    end: () => `retry: ${Math.round(RETRY * (0.5 + Math.random()))}\n\n`,
  });
}

function textOf(event: UserEvent): string {
  return `event: user.${event.type}\nid: ${idOf(event)}\ndata: ${event.json}\n\n`;
}

function idOf({ position, at }: EventPosition): string {
  return `${position}.${at}`;
}

/** The last event that the client received; undefined if it names none. Throws HttpProblem. */
function lastEvent({ headers, query }: RequestContext): EventPosition | undefined {
  for (const name of Object.keys(query)) {
    if (name === PARAMETER) continue;
    const message = `An event stream does not accept the parameter ${quote(name)}, only ${PARAMETER}`;
    throw new HttpProblem(400, 'UNKNOWN_PARAMETER', message);
  }
  // A reconnecting client sends the header, and still the parameter of its first request.
  const id = headers['last-event-id'] ?? query[PARAMETER] ?? '';
  if (id === '') return undefined;
  const [, position, at] = /^(\d{1,16})\.(\d{1,16})$/.exec(String(id)) ?? [];
  if (position === undefined) {
    throw new HttpProblem(400, 'INVALID_EVENT_ID', 'Last-Event-ID takes the id of an event of this list');
  }
  return { position: Number(position), at: Number(at) };
}
