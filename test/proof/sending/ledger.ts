import assert from 'node:assert/strict';
import type { Arrival } from './receiver.ts';

/** What decides whether an endpoint gets an event, as this proof understands it. */
export interface Wishes {
  readonly enabled: boolean;
  readonly types: readonly string[] | null;
  readonly channels: readonly string[] | null;
  /** The least amount that it is told of. */
  readonly least: number | null;
}

/** When a request was sent, and when it was answered: Infinity if it was not, or without saying what happened. */
interface Span {
  readonly sentAt: number;
  answeredAt: number;
}

interface Change extends Span {
  /** Undefined: removed. */
  readonly wishes: Wishes | undefined;
}

/** An endpoint that was asked for. */
export interface KnownEndpoint {
  readonly tenant: string;
  /** Where it receives. */
  readonly path: string;
  readonly isOrdered: boolean;
  /** Unknown until its creation was acknowledged. */
  id: string | undefined;
  /** Whether a change of it is under way. */
  isBusy: boolean;
  /** In the order in which they were sent; those that were refused are not there. */
  readonly changes: Change[];
}

/** An event that was asked for, from its first request to the answer of its last one. */
export interface KnownEvent extends Span {
  readonly token: string;
  readonly tenant: string;
  readonly type: string;
  readonly channels: readonly string[];
  readonly data: { readonly token: string; readonly key: number; readonly amount: number };
  id: string | undefined;
}

/** What was asked for and what was acknowledged, as the clients know it. */
export class SendingLedger {
  readonly endpoints: KnownEndpoint[] = [];
  readonly events: KnownEvent[] = [];

  get acknowledged(): readonly KnownEvent[] {
    return this.events.filter(({ answeredAt }) => answeredAt !== Number.POSITIVE_INFINITY);
  }

  /** The endpoints that certainly get an event, as they were subscribed all the time in which it was stored. */
  due(event: KnownEvent): readonly KnownEndpoint[] {
    return this.endpoints.filter((endpoint) => {
      if (endpoint.tenant !== event.tenant || !isWanted(endpoint, event)) return false;
      // What waits for an endpoint that is disabled or removed is given up.
      return !endpoint.changes.some(
        ({ sentAt, wishes }) => sentAt >= event.sentAt && wishes?.enabled !== true,
      );
    });
  }

  /** Fails unless `at`, the arrivals by path and token, are what they must be; resolves to how many were certain. */
  check(at: ReadonlyMap<string, ReadonlyMap<string, Arrival>>): number {
    let certain = 0;
    const events = new Map(this.events.map((event) => [event.token, event]));
    const dueAt = new Map<KnownEndpoint, KnownEvent[]>();
    for (const event of this.acknowledged) {
      for (const endpoint of this.due(event)) {
        const arrival = at.get(endpoint.path)?.get(event.token);
        const known = () => JSON.stringify({ event, changes: endpoint.changes });
        assert.ok(arrival, `${endpoint.path} did not get ${event.token}, which is lost for it: ${known()}`);
        assert.notEqual(arrival.acceptedAt, Number.POSITIVE_INFINITY, `${endpoint.path} ${event.token}`);
        const of = dueAt.get(endpoint) ?? [];
        of.push(event);
        dueAt.set(endpoint, of);
        certain++;
      }
    }
    for (const endpoint of this.endpoints) {
      for (const [token, { id, body }] of at.get(endpoint.path) ?? []) {
        const event = events.get(token);
        assert.ok(event, `${token} was published`);
        assert.equal(event.tenant, endpoint.tenant, `${endpoint.path} got ${token} of another tenant`);
        assert.deepEqual(JSON.parse(body).data, event.data);
        assert.ok(event.id === undefined || event.id === id, `${token} is one event`);
        if (event.answeredAt === Number.POSITIVE_INFINITY) continue;
        const wanted = isWanted(endpoint, event);
        const known = () => JSON.stringify({ event, changes: endpoint.changes });
        assert.ok(
          wanted !== false,
          `${endpoint.path} got ${token}, to which it was not subscribed: ${known()}`,
        );
      }
      if (endpoint.isOrdered)
        checkOrder(endpoint, dueAt.get(endpoint) ?? [], at.get(endpoint.path) ?? new Map());
    }
    return certain;
  }
}

/** One event of a key is accepted before a later one is sent. Those published at the same time have no order. */
function checkOrder(
  { path }: KnownEndpoint,
  due: readonly KnownEvent[],
  arrivals: ReadonlyMap<string, Arrival>,
): void {
  for (const group of Map.groupBy(due, ({ data }) => data.key).values()) {
    for (const later of group) {
      const { firstAt = 0 } = arrivals.get(later.token) ?? {};
      for (const earlier of group) {
        if (earlier.answeredAt >= later.sentAt) continue;
        const { acceptedAt = 0 } = arrivals.get(earlier.token) ?? {};
        assert.ok(firstAt > acceptedAt, `at ${path} ${later.token} overtook ${earlier.token}`);
      }
    }
  }
}

/** Whether an endpoint is subscribed to an event; undefined if a change of it may have been before or after. */
function isWanted({ changes }: KnownEndpoint, event: KnownEvent): boolean | undefined {
  if (changes.some(({ sentAt, answeredAt }) => sentAt <= event.answeredAt && answeredAt >= event.sentAt))
    return undefined;
  const wishes = changes.findLast(({ answeredAt }) => answeredAt < event.sentAt)?.wishes;
  if (wishes === undefined || !wishes.enabled) return false;
  const { types, channels, least } = wishes;
  const words = event.type.split('.');
  const isType = (pattern: string) =>
    pattern.split('.').every((word, i, all) => {
      if (word === '*') return i === all.length - 1 && words.length > i;
      return word === words[i] && (i < all.length - 1 || words.length === all.length);
    });
  return (
    (types === null || types.some(isType)) &&
    (channels === null || channels.some((channel) => event.channels.includes(channel))) &&
    (least === null || event.data.amount >= least)
  );
}
