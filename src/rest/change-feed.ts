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
import type { MaybePromise } from '../core/scheduler.ts';
import { quote } from '../core/text.ts';
import {
  type ChangeEvent,
  type EventFeed,
  type EventFollower,
  type EventPosition,
  EventsGoneError,
  type UserEvent,
} from '../relations/events.ts';

/** Time after which a client reconnects, in milliseconds. */
const RETRY = 2_000;
/** The query parameter with the last event, for a new EventSource, which cannot set Last-Event-ID. */
export const LAST_EVENT_PARAMETER = 'lastEventId';

/** The policy ends a stream when its caller's credentials expire or are revoked. */
interface ChangeStreamOptions extends Guards {
  /** Maximum concurrent streams. */
  readonly maxStreams: number;
}

/** What a stream sends of which events. */
interface StreamedEvents<E extends ChangeEvent> {
  readonly feed: EventFeed<E>;
  /** The events that the client gets of some, perhaps changed. Default: all of them. */
  readonly choose?: (events: readonly E[]) => MaybePromise<readonly E[]>;
  /** Completes the refusal of one stream too many: `the users`. */
  readonly followed: string;
  /** The name of an event, such as `user.created`. */
  nameOf(event: E): string;
}

/** Opens streams of events, of which there may be so many at a time. */
export type OpenStream = <E extends ChangeEvent>(
  ctx: RequestContext,
  events: StreamedEvents<E>,
) => Promise<Reply>;

/** Replies with the changes of a feed from now on, or after the event that the client names. */
export function changeStreams({ maxStreams, policy, cors }: ChangeStreamOptions): OpenStream {
  let open = 0;
  return async (ctx, { feed, choose, followed, nameOf }) => {
    if (ctx.method === 'HEAD') return eventReply(NO_PIECES, HEADERS);
    refuseFromOtherSite('Event streams', ctx, cors);
    const from = lastEvent(ctx);
    if (open >= maxStreams) throw tooManyStreams(followed);
    open++;
    ctx.onClose(() => open--);
    const events = await feed.follow(from).catch((error: unknown) => {
      throw error instanceof EventsGoneError ? new HttpProblem(410, error.code, error.message) : error;
    });
    const sent = choose === undefined ? events : chosen(events, choose);
    return eventReply(streamOf(events.start, whileValid(toldGone(sent), policy, ctx), nameOf), HEADERS);
  };
}

/** GET /users as an event stream. */
export function userChanges(
  open: OpenStream,
  feed: EventFeed<UserEvent>,
): (ctx: RequestContext) => Promise<Reply> {
  return async (ctx) => {
    for (const name of Object.keys(ctx.query)) {
      if (name === LAST_EVENT_PARAMETER) continue;
      const message = `An event stream does not accept the parameter ${quote(name)}, only ${LAST_EVENT_PARAMETER}`;
      throw new HttpProblem(400, 'UNKNOWN_PARAMETER', message);
    }
    return open(ctx, { feed, followed: 'the users', nameOf: ({ type }) => `user.${type}` });
  };
}

/** After how many events that a client does not want it learns the position, so that it can resume there. */
const MAX_UNWANTED = 100;

/**
 * The wanted events, in batches that are not empty; a batch may end with an event that has no data. Returning it
 * returns the follower at once, also while it waits for events.
 */
function chosen<E extends ChangeEvent>(
  events: EventFollower<E>,
  choose: (events: readonly E[]) => MaybePromise<readonly E[]>,
): AsyncIterableIterator<readonly (E | EventPosition)[], undefined> {
  let unwanted = 0;
  function sentOf(batch: readonly E[], wanted: readonly E[]): readonly (E | EventPosition)[] {
    const last = batch.at(-1);
    unwanted = last?.position === wanted.at(-1)?.position ? 0 : unwanted + batch.length - wanted.length;
    if (unwanted < MAX_UNWANTED || last === undefined) return wanted;
    unwanted = 0;
    return [...wanted, { position: last.position, at: last.at }];
  }
  return {
    async next() {
      for (;;) {
        const { value, done } = await events.next();
        if (done === true) return { value: undefined, done };
        const sent = sentOf(value, await choose(value));
        if (sent.length > 0) return { value: sent, done: false };
      }
    },
    async return() {
      await events.return();
      return { value: undefined, done: true };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** The last event of a stream whose next events were removed: a client that resumes gets the same code with 410. */
interface Gone {
  readonly code: string;
  readonly message: string;
}

/** What a stream sends: events, places without data, and why it ends. */
type Sent<E> = E | EventPosition | Gone;

/** The events, and a last one if the next ones were removed. */
function toldGone<E extends ChangeEvent>(
  events: AsyncIterableIterator<readonly Sent<E>[], undefined>,
): AsyncIterableIterator<readonly Sent<E>[], undefined> {
  let hasEnded = false;
  return {
    async next() {
      if (hasEnded) return { value: undefined, done: true };
      try {
        return await events.next();
      } catch (error) {
        if (!(error instanceof EventsGoneError)) throw error;
        hasEnded = true;
        const { code, message } = error;
        await events.return?.();
        return { value: [{ code, message }], done: false };
      }
    },
    async return() {
      await events.return?.();
      return { value: undefined, done: true };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

const HEADERS = { vary: 'accept' };

function tooManyStreams(followed: string): HttpProblem {
  return new HttpProblem(503, 'TOO_MANY_STREAMS', `Too many clients follow ${followed}`, {
    headers: { 'retry-after': '5' },
  });
}

/**
 * A stream that starts after an event. It sends the event's id first, so the client can resume even if it
 * receives no event.
 */
function streamOf<E extends ChangeEvent>(
  start: EventPosition,
  events: AsyncIterable<readonly Sent<E>[]>,
  nameOf: (event: E) => string,
): EventStream {
  const textOf = (event: Sent<E>) => {
    if ('code' in event) return `event: gone\ndata: ${JSON.stringify(event)}\n\n`;
    return 'json' in event
      ? `event: ${nameOf(event)}\nid: ${idOf(event)}\ndata: ${event.json}\n\n`
      : `id: ${idOf(event)}\n\n`;
  };
  return new EventStream(events, {
    waits: true,
    begin: `retry: ${RETRY}\nid: ${idOf(start)}\n\n`,
    text: (batch) => batch.map(textOf).join(''),
    // Spreads the reconnections of a stopping process's clients over time.
    end: () => `retry: ${Math.round(RETRY * (0.5 + Math.random()))}\n\n`,
  });
}

function idOf({ position, at }: EventPosition): string {
  return `${position}.${at}`;
}

/** The last event that the client received; undefined if it names none. Throws HttpProblem. */
function lastEvent({ headers, query }: RequestContext): EventPosition | undefined {
  // A reconnecting client sends the header, and still the parameter of its first request.
  const id = headers['last-event-id'] ?? query[LAST_EVENT_PARAMETER] ?? '';
  if (id === '') return undefined;
  const [, position, at] = /^(\d{1,16})\.(\d{1,16})$/.exec(String(id)) ?? [];
  if (position === undefined) {
    throw new HttpProblem(400, 'INVALID_EVENT_ID', 'Last-Event-ID takes the id of an event of this list');
  }
  return { position: Number(position), at: Number(at) };
}
