import assert from 'node:assert/strict';
import { Agent, type OutgoingHttpHeaders } from 'node:http';
import type { Random } from '../../support/random.ts';
import { RowWriter } from '../rows/writer.ts';
import { type Reply, send } from './client.ts';
import type { Ledger, UserContent } from './ledger.ts';

export interface LoadOptions {
  /** Base URLs of the doors. */
  readonly rest: string;
  readonly webhook: string;
  readonly ledger: Ledger;
  readonly random: Random;
  /** Begins every token and name of this load; no other load has it. */
  readonly prefix: string;
  readonly connections: number;
  /** Called at once when a write was acknowledged, with how many there were. */
  onAcknowledged(count: number): void;
}

/** Which events are sent; `nobody` has no handler, the first two those of the program. */
const EVENTS = ['new_commit', 'payment_received', 'nobody', 'failing', 'ordered', 'steady', 'steady'];

/** Deliveries in order share so many keys. */
export const KEYS = 8;

/**
 * Sends writes of all kinds over several connections, one at a time on each, until the server is gone.
 * Resolves to the number of acknowledged ones; rejects when a reply is not what the contract says.
 */
export async function runLoad(options: LoadOptions): Promise<number> {
  const { rest, webhook, ledger, random, prefix, connections, onAcknowledged } = options;
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  let sent = 0;
  let acknowledged = 0;
  let gone = false;

  /** The reply; undefined once the server is gone. */
  async function ask(
    method: string,
    url: string,
    body?: string,
    headers?: OutgoingHttpHeaders,
  ): Promise<Reply | undefined> {
    try {
      return await send(agent, method, url, body, headers);
    } catch {
      gone = true;
      return undefined;
    }
  }
  function expect(reply: Reply, pattern: RegExp): void {
    assert.equal(reply.status, 200, reply.text);
    assert.match(reply.text, pattern);
    count();
  }
  function count(): void {
    acknowledged++;
    onAcknowledged(acknowledged);
  }
  function content(): UserContent {
    const name = `${prefix}-${++sent}`;
    return { name, email: `${random.below(1e9)}@example.org` };
  }

  async function deliver(): Promise<void> {
    const event = random.pick(EVENTS);
    const token = `${prefix}-${++sent}`;
    const data = {
      token,
      pause: random.chance(0.25) ? 1 + random.below(10) : 0,
      key: random.below(KEYS),
      filling: 'x'.repeat(random.chance(0.02) ? 60_000 : random.below(400)),
    };
    const body = JSON.stringify({ event, data });
    const delivery = ledger.sendsDelivery(token, event, body);
    const reply = await ask('POST', `${webhook}/webhook`, body);
    if (reply === undefined) return;
    expect(reply, /^Webhook received$/);
    delivery.known = 'acknowledged';
  }
  async function create(): Promise<number | undefined> {
    const user = content();
    const before = ledger.highestId;
    ledger.creates(user);
    const reply = await ask('POST', `${rest}/users`, JSON.stringify(user));
    if (reply === undefined) return undefined;
    expect(reply, /"User created successfully"/);
    const id = Number(/^\/users\/(\d+)$/.exec(reply.headers.location ?? '')?.[1]);
    ledger.created(id, user, before);
    return id;
  }
  async function change(id: number, to: UserContent | undefined): Promise<void> {
    ledger.changes(id, to);
    const reply =
      to === undefined
        ? await ask('DELETE', `${rest}/delete/${id}`)
        : await ask('PUT', `${rest}/update/${id}`, JSON.stringify(to));
    if (reply === undefined) return;
    expect(reply, /"User (updated|deleted) successfully"/);
    ledger.changed(id, to);
  }
  async function read(id: number, expected: UserContent): Promise<void> {
    const reply = await ask('GET', `${rest}/users/${id}`);
    if (reply === undefined) return;
    assert.deepEqual(JSON.parse(reply.text), { status: 'success', data: { id, ...expected } });
  }

  /** One connection; nobody else changes the users that it has created. */
  async function connection(_: unknown, number: number): Promise<void> {
    const own: number[] = [];
    const rows = new RowWriter(ledger.rows, random, `${prefix}-${number}`, (method, path, body, headers) =>
      ask(method, `${rest}${path}`, body, headers),
    );
    while (!gone) {
      const id = own[random.below(own.length)];
      const kind = random.next();
      if (kind < 0.4) await deliver();
      else if (kind < 0.65) {
        if (await rows.write()) count();
        if (!gone && random.chance(0.2)) await rows.read();
      } else if (kind < 0.8 || id === undefined) {
        const created = await create();
        if (created !== undefined) own.push(created);
      } else if (kind < 0.92) {
        const to = content();
        await change(id, to);
        if (!gone) await read(id, to);
      } else {
        await change(id, undefined);
        own.splice(own.indexOf(id), 1);
      }
    }
  }

  try {
    await Promise.all(Array.from({ length: connections }, connection));
  } finally {
    agent.destroy();
  }
  return acknowledged;
}
