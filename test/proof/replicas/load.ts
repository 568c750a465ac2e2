import assert from 'node:assert/strict';
import { Agent, type OutgoingHttpHeaders } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { PorticoProcess } from '../../support/portico-process.ts';
import type { Random } from '../../support/random.ts';
import { type Reply, send } from '../kill/client.ts';
import type { Ledger, UserContent } from '../kill/ledger.ts';
import { KEYS } from '../kill/load.ts';
import { RowWriter } from '../rows/writer.ts';
import type { OrderedDelivery } from './order.ts';
import type { CreatedUser } from './subscriber.ts';

export interface LoadOptions {
  /** The process that gets the next request. */
  next(): PorticoProcess | undefined;
  readonly ledger: Ledger;
  readonly random: Random;
  readonly connections: number;
  readonly signal: AbortSignal;
  /** Called when a process has acknowledged a delivery, a user by REST or a change of rows. */
  onStored?(portico: PorticoProcess): void;
}

/** What the clients have seen up to now. */
export interface LoadResult {
  readonly created: CreatedUser[];
  readonly ordered: OrderedDelivery[];
  /** Users and deliveries of which a reply said that they were not stored. */
  readonly refused: Set<string>;
  /** How many requests got no reply, or one that does not tell what happened. */
  unknown: number;
  /** How many users were read. */
  reads: number;
}

const JSON_BODY = { 'content-type': 'application/json' };
const MUTATION =
  'mutation ($name: String!, $email: String!) { createUser(name: $name, email: $email) { id } }';
/** What a connection waits after each request, up to so many milliseconds. */
const THINK = 10;
const EVENTS = ['failing', 'ordered', 'steady', 'steady', 'nobody'];

/**
 * Sends writes of all kinds, and reads of what was acknowledged, to the processes in turn until it is told to stop. What
 * fails is never sent again. Rejects when a reply is wrong.
 */
export async function runLoad(options: LoadOptions, result: LoadResult): Promise<void> {
  const { next, ledger, random, connections, signal, onStored } = options;
  const agent = new Agent({ keepAlive: true });
  const known: (UserContent & { readonly id: number })[] = [];
  let sent = 0;

  async function ask(
    door: string,
    method: string,
    path: string,
    body?: string,
    headers: OutgoingHttpHeaders = {},
  ): Promise<Reply | undefined> {
    const portico = next();
    try {
      const all = { ...JSON_BODY, ...headers };
      const reply = await send(agent, method, `${portico?.urls[door]}${path}`, body, all);
      if (portico !== undefined && method !== 'GET' && door !== 'graphql' && reply.status < 300)
        onStored?.(portico);
      return reply;
    } catch {
      return undefined;
    }
  }
  /** Whether a write was acknowledged; a 503 that asks to send again says that nothing was stored. */
  function acknowledged(reply: Reply | undefined, name: string): reply is Reply {
    if (reply?.status === 200) return true;
    if (reply !== undefined) assert.equal(reply.status, 503, reply.text);
    if (reply?.headers['retry-after'] !== undefined) result.refused.add(name);
    else result.unknown++;
    return false;
  }

  async function deliver(): Promise<void> {
    const event = random.pick(EVENTS);
    const token = `d${++sent}`;
    const key = random.below(KEYS);
    const data = { token, pause: random.chance(0.5) ? random.below(20) : 0, key };
    const body = JSON.stringify({ event, data });
    const delivery = ledger.sendsDelivery(token, event, body);
    const sentAt = performance.now();
    const reply = await ask('webhook', 'POST', '/webhook', body);
    const isKnown = acknowledged(reply, token);
    if (isKnown) delivery.known = 'acknowledged';
    const answeredAt = isKnown ? performance.now() : Number.POSITIVE_INFINITY;
    if (event === 'ordered') result.ordered.push({ token, key, sentAt, answeredAt });
  }

  async function create(): Promise<void> {
    const user = { name: `u${++sent}`, email: `${random.below(1e9)}@example.org` };
    const before = ledger.highestId;
    const sentAt = performance.now();
    ledger.creates(user);
    const id = await (random.chance(0.5) ? byRest(user) : byGraphql(user));
    if (id === undefined) return;
    ledger.created(id, user, before);
    result.created.push({ id, sentAt, answeredAt: performance.now() });
    known.push({ id, ...user });
  }
  async function byRest(user: UserContent): Promise<number | undefined> {
    const reply = await ask('rest', 'POST', '/users', JSON.stringify(user));
    if (!acknowledged(reply, user.name)) return undefined;
    return Number(/^\/users\/(\d+)$/.exec(reply.headers.location ?? '')?.[1]);
  }
  async function byGraphql(user: UserContent): Promise<number | undefined> {
    const body = JSON.stringify({ query: MUTATION, variables: user });
    const reply = await ask('graphql', 'POST', '/graphql', body);
    if (reply !== undefined) {
      assert.equal(reply.status, 200, reply.text);
      const { data } = JSON.parse(reply.text) as { data: { createUser: { id: string } } | null };
      if (data !== null) return Number(data.createUser.id);
    }
    result.unknown++;
    return undefined;
  }

  /** Whatever is acknowledged by one, every one of them has. */
  async function read(): Promise<void> {
    const user = known[random.below(known.length)];
    if (user === undefined) return;
    const reply = await ask('rest', 'GET', `/users/${user.id}`);
    if (reply === undefined || reply.status === 503) return;
    assert.deepEqual(JSON.parse(reply.text), { status: 'success', data: user });
    result.reads++;
  }

  async function connection(_: unknown, number: number): Promise<void> {
    const rows = new RowWriter(ledger.rows, random, `r${number}`, async (method, path, body, headers) => {
      const reply = await ask('rest', method, path, body, headers);
      return reply?.status === 503 ? undefined : reply;
    });
    while (!signal.aborted) {
      const kind = random.next();
      if (kind < 0.25) await deliver();
      else if (kind < 0.5) await create();
      else if (kind < 0.7) await rows.write();
      else if (kind < 0.8) await rows.read();
      else await read();
      await delay(random.below(THINK));
    }
  }

  try {
    await Promise.all(Array.from({ length: connections }, connection));
  } finally {
    agent.destroy();
  }
}
