import type { EventFollower, EventPosition, UserEvent, UserEventFeed } from '../../src/relations/events.ts';

/** The next events of a follower, at least that many. */
export async function eventsUntil(events: EventFollower, count: number): Promise<readonly UserEvent[]> {
  const found: UserEvent[] = [];
  while (found.length < count) found.push(...((await events.next()).value ?? []));
  return found;
}

/** The events of a follower up to the one of a user whose JSON has the text. */
export async function followAll(events: EventFollower, text: string): Promise<readonly UserEvent[]> {
  const found: UserEvent[] = [];
  while (found.at(-1)?.json.includes(text) !== true) found.push(...((await events.next()).value ?? []));
  return found;
}

/** The newest event of a feed. */
export async function positionOf(feed: UserEventFeed): Promise<EventPosition> {
  const events = await feed.follow();
  await events.return();
  return { position: events.start.position, at: events.start.at };
}
