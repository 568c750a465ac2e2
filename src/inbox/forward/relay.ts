import { setTimeout as delay } from 'node:timers/promises';
import {
  CHANGE_TYPES,
  type ChangeEvent,
  changeName,
  type EventFeed,
  type EventFollower,
  EventsGoneError,
  type RelationEvent,
  type RelationFeed,
  type UserEvent,
} from '../../relations/events.ts';
import type { Relation } from '../../relations/relation.ts';
import { DeliveryIds, type NewDelivery, OWN_SOURCES } from '../delivery.ts';
import type { Appended, Inbox, RelayPlace, RelayStore } from '../inbox.ts';
import type { JobPlan } from '../job-plan.ts';
import type { ForwardSettings } from './forward.ts';

/** The changes of relations, and the relations. */
export interface RecordedChanges {
  readonly feed: RelationFeed;
  readonly relations: readonly Relation[];
}

/** Whether an address or a handler wants changes of relations. */
export function wantsChanges(
  { relations }: RecordedChanges,
  forwards: readonly ForwardSettings[],
  handlers: ReadonlyMap<string, unknown>,
): boolean {
  if (forwards.some(({ changes = [] }) => changes.length > 0)) return true;
  return relations.some(
    (relation) => relation.changes && CHANGE_TYPES.some((type) => handlers.has(changeName(relation, type))),
  );
}

/** What targets get of a change. */
interface ToldChange {
  readonly source: string;
  readonly event: string;
  readonly data: unknown;
  /** What identifies the row: its changes are sent in order, unless the target has its own order. */
  readonly row: string;
}

export function toldOfUser({ type, json }: UserEvent): ToldChange {
  const data = JSON.parse(json) as { readonly id: number };
  return { source: OWN_SOURCES.users, event: `user.${type}`, data, row: String(data.id) };
}

export function toldOfRow({ name, relation, key, json }: RelationEvent): ToldChange {
  return { source: OWN_SOURCES.changes, event: name, data: JSON.parse(json), row: `${relation}/${key}` };
}

/** The delivery of a change, in the format of Standard Webhooks; undefined if no target wants it. */
function changeDelivery(
  { at }: ChangeEvent,
  { source, event, data, row }: ToldChange,
  plan: JobPlan,
  { id, receivedAt }: Pick<NewDelivery, 'id' | 'receivedAt'>,
): NewDelivery | undefined {
  const body = { type: event, timestamp: new Date(at).toISOString(), data };
  const facts = { id, source, event, dataPointer: '/data', receivedAt };
  const jobs = plan(facts, body);
  if (jobs.length === 0) return undefined;
  return {
    ...facts,
    contentType: 'application/json',
    body: Buffer.from(JSON.stringify(body)),
    dedupKey: null,
    jobs: jobs.map((job) => ({ ...job, orderKey: job.orderKey ?? row })),
  };
}

interface ChangeRelayOptions<E extends ChangeEvent> {
  readonly inbox: Pick<Inbox, 'clock'>;
  /** The event up to which there are deliveries. */
  readonly relay: RelayStore;
  readonly feed: EventFeed<E>;
  /** Whether any target wants changes. */
  readonly isWanted: boolean;
  toldOf(event: E): ToldChange;
  readonly plan: JobPlan;
  /** Publishes changes before the place moves beyond them; after a failure once more. */
  readonly publish?: ((events: readonly E[]) => Promise<unknown>) | undefined;
  /** Called with each delivery that this process has stored. */
  onAppended(delivery: NewDelivery, appended: Appended): void;
  /** Called when changes were removed before deliveries could be made of them. */
  onLost(): void;
  onError(error: unknown): void;
}

/** Pause after a failure, or after another process was faster, in milliseconds. */
const PAUSE = 1_000;

/** Maximum time between moves of the place, even to itself, in ms: within the shortest retention. */
const RELAY_SIGN = 10 * 60_000;

/**
 * Makes one delivery of each change that a target wants: its position moves in the commit that stores the deliveries.
 * If several processes read the same changes, one stores them; the others pause and continue after them.
 */
export class ChangeRelay<E extends ChangeEvent> {
  readonly #options: ChangeRelayOptions<E>;
  readonly #ids = new DeliveryIds();
  readonly #stopped = new AbortController();
  #follower: EventFollower<E> | undefined;
  #running: Promise<void> | undefined;

  constructor(options: ChangeRelayOptions<E>) {
    this.#options = options;
  }

  /** Resolves once every later change is sure to be relayed, or the store has failed. */
  async start(): Promise<void> {
    const { relay, isWanted, onError } = this.#options;
    const begun = Promise.withResolvers<void>();
    // Without an address, the database need not keep changes for the relay.
    this.#running = isWanted ? this.#run(begun.resolve) : relay.end().catch(onError);
    await Promise.race([begun.promise, this.#running]);
  }

  /** Resolves once no write is in progress. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#follower?.return();
    await this.#running;
  }

  async #run(onBegun: () => void): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      await this.#relay(onBegun).catch(this.#options.onError);
      onBegun();
      if (!signal.aborted) await delay(PAUSE, undefined, { signal }).catch(() => {});
    }
  }

  /** Stores changes until another process does so or `stop` is called. Rejects as the store does. */
  async #relay(onBegun: () => void): Promise<void> {
    try {
      const follower = await this.#followFrom();
      onBegun();
      await this.#relayFrom(follower);
    } catch (error) {
      if (!(error instanceof EventsGoneError)) throw error;
      this.#options.onLost();
      await this.#options.relay.end();
    }
  }

  async #relayFrom(follower: EventFollower<E>): Promise<void> {
    const { relay } = this.#options;
    this.#follower = follower;
    let place: RelayPlace = follower.start;
    const sign = setInterval(() => relay.move(place, place, []).catch(() => {}), RELAY_SIGN).unref();
    try {
      if (this.#stopped.signal.aborted) return;
      for await (const events of follower) {
        const last = events.at(-1);
        if (last === undefined || !(await this.#store(place, last, events))) return;
        place = last;
      }
    } finally {
      clearInterval(sign);
      await follower.return();
    }
  }

  /** Follows the events after the relay's position. */
  async #followFrom(): Promise<EventFollower<E>> {
    const { feed, relay } = this.#options;
    const newest = await feed.follow();
    const place = await relay.begin(newest.start);
    if (isSame(place, newest.start)) return newest;
    await newest.return();
    return feed.follow(place);
  }

  async #store(from: RelayPlace, { position, at }: E, events: readonly E[]): Promise<boolean> {
    const { inbox, relay, plan, toldOf, publish, onAppended } = this.#options;
    await publish?.(events);
    const receivedAt = await inbox.clock();
    const deliveries = events.flatMap(
      (event) =>
        changeDelivery(event, toldOf(event), plan, { id: this.#ids.next(receivedAt), receivedAt }) ?? [],
    );
    const moved = await relay.move(from, { position, at }, deliveries);
    if (moved) for (const delivery of deliveries) onAppended(delivery, 'stored');
    return moved;
  }
}

function isSame(one: RelayPlace, other: RelayPlace): boolean {
  return one.position === other.position && one.at === other.at;
}
