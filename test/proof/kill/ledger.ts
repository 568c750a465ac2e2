import assert from 'node:assert/strict';
import type { RowContent } from '../rows/content.ts';
import { RowHistory } from '../rows/history.ts';

/** What a client knows of a delivery that it has sent. `unknown`: no reply came. */
export interface SentDelivery {
  readonly event: string;
  readonly body: string;
  known: 'acknowledged' | 'unknown' | 'absent';
}

export interface UserContent {
  readonly name: string;
  readonly email: string;
}

/** What may be stored under an id; undefined: nothing. */
type Possible = readonly (UserContent | undefined)[];

/** What a store holds, as an auditor reads it. */
export interface StoreContent {
  readonly users: ReadonlyMap<number, UserContent>;
  /** Body and event by token. */
  readonly deliveries: ReadonlyMap<string, { readonly event: string | null; readonly body: string }>;
  /** Undefined: the relations have no tables yet. */
  readonly rows: RowContent | undefined;
}

const text = (content: UserContent | undefined) =>
  content ? `${content.name} <${content.email}>` : 'nobody';

/**
 * What was sent and what was acknowledged, kept by the client. What got no reply may have happened or not;
 * once the store was looked at after the crash it is the one or the other for good.
 */
export class Ledger {
  readonly deliveries = new Map<string, SentDelivery>();
  readonly rows = new RowHistory();
  readonly #users = new Map<number, Possible>();
  readonly #creating = new Map<string, UserContent>();
  #highestId = 0;

  /** The highest id that is known to have been given away. */
  get highestId(): number {
    return this.#highestId;
  }

  get acknowledgedDeliveries(): number {
    return [...this.deliveries.values()].filter(({ known }) => known === 'acknowledged').length;
  }

  get users(): number {
    return this.#users.size;
  }

  sendsDelivery(token: string, event: string, body: string): SentDelivery {
    const sent: SentDelivery = { event, body, known: 'unknown' };
    this.deliveries.set(token, sent);
    return sent;
  }

  creates(content: UserContent): void {
    this.#creating.set(content.name, content);
  }

  /** `before` is the highest id that was known when the create was sent. */
  created(id: number, content: UserContent, before: number): void {
    assert.ok(!this.#users.has(id), `id ${id} was given away a second time`);
    assert.ok(id > before, `id ${id} came after ${before}`);
    this.#creating.delete(content.name);
    this.#users.set(id, [content]);
    this.#highestId = Math.max(this.#highestId, id);
  }

  /** An update or, with undefined, a deletion is on its way. */
  changes(id: number, content: UserContent | undefined): void {
    this.#users.set(id, [...(this.#users.get(id) ?? []), content]);
  }

  changed(id: number, content: UserContent | undefined): void {
    this.#users.set(id, [content]);
  }

  /** Compares everything with the store and learns what became of the requests that got no reply. */
  reconcile({ users, deliveries, rows }: StoreContent): void {
    this.rows.settle(rows);
    for (const [token, sent] of this.deliveries) {
      const stored = deliveries.get(token);
      if (stored === undefined) {
        assert.notEqual(sent.known, 'acknowledged', `delivery ${token} was acknowledged and is lost`);
        sent.known = 'absent';
        continue;
      }
      assert.notEqual(sent.known, 'absent', `delivery ${token} was not there after a crash and is now`);
      assert.equal(stored.body, sent.body, `the body of delivery ${token}`);
      assert.equal(stored.event, sent.event, `the event of delivery ${token}`);
      sent.known = 'acknowledged';
    }
    for (const token of deliveries.keys()) assert.ok(this.deliveries.has(token), `nobody sent ${token}`);

    for (const [id, possible] of this.#users) {
      const stored = users.get(id);
      assert.ok(
        possible.some((content) => text(content) === text(stored)),
        `user ${id} is ${text(stored)} and should be ${possible.map(text).join(' or ')}`,
      );
      this.#users.set(id, [stored]);
    }
    for (const [id, stored] of users) {
      if (this.#users.has(id)) continue;
      assert.equal(text(this.#creating.get(stored.name)), text(stored), `nobody created user ${id}`);
      assert.ok(id > 0);
      this.#creating.delete(stored.name);
      this.#users.set(id, [stored]);
      this.#highestId = Math.max(this.#highestId, id);
    }
    this.#creating.clear();
  }
}
