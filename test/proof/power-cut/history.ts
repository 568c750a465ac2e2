import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import type { UserContent } from '../kill/ledger.ts';
import { readRows } from '../rows/content.ts';
import { RowHistory } from '../rows/history.ts';

/** Something that was sent; the x-request-id of the reply that acknowledged it, once there was one. */
export interface Sent {
  acknowledgedBy?: string;
}

interface SentDelivery extends Sent {
  readonly event: string;
  readonly body: string;
}

/** What a user was made; undefined: deleted. */
interface UserState extends Sent {
  readonly content: UserContent | undefined;
}

/** Everything that clients sent, each with the reply that acknowledged it. */
export class History {
  readonly deliveries = new Map<string, SentDelivery>();
  readonly rows = new RowHistory();
  /** By id, each state after the one before it was acknowledged. */
  readonly users = new Map<number, readonly UserState[]>();
  /** Creates by name: their ids come with the reply. */
  readonly creates = new Map<string, UserContent>();

  sendsDelivery(token: string, event: string, body: string): Sent {
    const sent: SentDelivery = { event, body };
    this.deliveries.set(token, sent);
    return sent;
  }

  sendsUser(id: number, content: UserContent | undefined): Sent {
    const state: UserState = { content };
    this.users.set(id, [...(this.users.get(id) ?? []), state]);
    return state;
  }

  get acknowledged(): number {
    const others = [...this.deliveries.values(), ...[...this.users.values()].flat()];
    return (
      this.rows.acknowledged + others.filter(({ acknowledgedBy }) => acknowledgedBy !== undefined).length
    );
  }
}

/** Fails when the database lacks something whose reply is in `replies`, or holds what nobody sent. */
export function checkHistory(db: DatabaseSync, history: History, replies: ReadonlySet<string>): void {
  checkUsers(db, history, replies);
  checkDeliveries(db, history, replies);
  history.rows.check(readRows(db), { isKnown: (group) => isAcknowledged(group, replies) });
}

function isAcknowledged({ acknowledgedBy }: Sent, replies: ReadonlySet<string>): boolean {
  return acknowledgedBy !== undefined && replies.has(acknowledgedBy);
}

const text = (content: UserContent | undefined) =>
  content ? `${content.name} <${content.email}>` : 'nobody';

function checkUsers(db: DatabaseSync, { users, creates }: History, replies: ReadonlySet<string>): void {
  const rows = db.prepare('SELECT id, name, email FROM users').all();
  const stored = new Map(
    rows.map(({ id, name, email }) => [Number(id), { name: String(name), email: String(email) }]),
  );
  for (const [id, states] of users) {
    const acknowledged = states.filter((state) => isAcknowledged(state, replies)).length;
    if (acknowledged === 0) continue;
    // The next change was perhaps under way.
    const possible = states.slice(acknowledged - 1, acknowledged + 1).map(({ content }) => content);
    assert.ok(
      possible.some((content) => text(content) === text(stored.get(id))),
      `lost: user ${id} is ${text(stored.get(id))} and should be ${possible.map(text).join(' or ')}`,
    );
  }
  // What nobody was told of may be there or not.
  for (const [id, content] of stored) {
    const known = [creates.get(content.name), ...(users.get(id) ?? []).map((state) => state.content)];
    assert.ok(known.map(text).includes(text(content)), `nobody made user ${id} ${text(content)}`);
  }
}

function checkDeliveries(db: DatabaseSync, { deliveries }: History, replies: ReadonlySet<string>): void {
  const rows = db
    .prepare(
      `SELECT CAST(body AS TEXT) AS body, event, (SELECT count(*) FROM jobs WHERE delivery = d.seq) AS jobs
      FROM deliveries AS d`,
    )
    .all();
  const stored = new Set<string>();
  for (const { body, event, jobs } of rows) {
    const { data } = JSON.parse(String(body)) as { data: { token: string } };
    const sent = deliveries.get(data.token);
    assert.ok(sent !== undefined, `nobody sent ${data.token}`);
    assert.ok(!stored.has(data.token), `delivery ${data.token} is stored twice`);
    assert.equal(body, sent.body);
    assert.equal(event, sent.event);
    assert.equal(jobs, sent.event === 'nobody' ? 0 : 1, `jobs of ${data.token}`);
    stored.add(data.token);
  }
  for (const [token, sent] of deliveries) {
    assert.ok(stored.has(token) || !isAcknowledged(sent, replies), `lost: delivery ${token}`);
  }
}
