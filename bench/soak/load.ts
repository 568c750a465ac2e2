import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { type Reply, send } from '../../test/proof/kill/client.ts';
import type { Ledger, UserContent } from '../../test/proof/kill/ledger.ts';
import type { PorticoProcess } from '../../test/support/portico-process.ts';
import type { Random } from '../../test/support/random.ts';
import type { Group, Recorder } from './recorder.ts';

export interface LoadOptions {
  /** The process for the next request. */
  next(): PorticoProcess | undefined;
  readonly ledger: Ledger;
  readonly recorder: Recorder;
  readonly random: Random;
  readonly connections: number;
  /** Maximum requests per second over all connections. */
  readonly rate: number;
  readonly signal: AbortSignal;
}

const JSON_BODY = { 'content-type': 'application/json' };
const CREATE = 'mutation ($name: String!, $email: String!) { createUser(name: $name, email: $email) { id } }';
const READ = 'query ($id: ID!) { user(id: $id) { id name email } }';
/** `nobody` has no handler. */
const EVENTS = ['steady', 'steady', 'steady', 'steady', 'steady', 'ordered', 'ordered', 'failing', 'nobody'];
const KEYS = 8;
/** Maximum users that a connection creates and then changes. */
const MOST_OWN = 200;

/**
 * Sends requests of all kinds to all doors until told to stop, and records acknowledgements in the ledger. A
 * failed request is never repeated. Rejects if a reply is wrong.
 */
export async function runLoad(options: LoadOptions): Promise<void> {
  const { next, ledger, recorder, random, connections, rate, signal } = options;
  const agent = new Agent({ keepAlive: true });
  const pause = (2 * 1_000 * connections) / rate;
  let sent = 0;

  /** The reply to a successful request; any other outcome is recorded as a failure. */
  async function ask(
    group: Group,
    kind: string,
    door: string,
    method: string,
    path: string,
    body?: string,
  ): Promise<Reply | undefined> {
    const portico = next();
    if (portico === undefined) {
      recorder.failed('no reply: no process runs');
      await delay(50);
      return undefined;
    }
    const began = performance.now();
    try {
      const reply = await send(agent, method, `${portico.urls[door]}${path}`, body, JSON_BODY);
      const failure = failureOf(reply, door);
      if (failure !== undefined) {
        recorder.failed(failure);
        return undefined;
      }
      recorder.succeeded(group, kind, performance.now() - began);
      return reply;
    } catch (error) {
      recorder.failed(`no reply: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`);
      return undefined;
    }
  }
  const content = (): UserContent => ({ name: `u${++sent}`, email: `${random.below(1e9)}@example.org` });

  async function deliver(): Promise<void> {
    const event = random.pick(EVENTS);
    const token = `d${++sent}`;
    const data = { token, pause: random.chance(0.25) ? random.below(20) : 0, key: random.below(KEYS) };
    const body = JSON.stringify({ event, data });
    const delivery = ledger.sendsDelivery(token, event, body);
    const reply = await ask('writes', 'deliver', 'webhook', 'POST', '/webhook', body);
    if (reply === undefined) return;
    assert.equal(reply.text, 'Webhook received');
    delivery.known = 'acknowledged';
  }

  async function create(): Promise<(UserContent & { readonly id: number }) | undefined> {
    const user = content();
    const before = ledger.highestId;
    ledger.creates(user);
    const id = await (random.chance(0.7) ? createByRest(user) : createByGraphql(user));
    if (id === undefined) return undefined;
    ledger.created(id, user, before);
    return { id, ...user };
  }
  async function createByRest(user: UserContent): Promise<number | undefined> {
    const reply = await ask('writes', 'create', 'rest', 'POST', '/users', JSON.stringify(user));
    if (reply === undefined) return undefined;
    return Number(/^\/users\/(\d+)$/.exec(reply.headers.location ?? '')?.[1]);
  }
  async function createByGraphql(user: UserContent): Promise<number | undefined> {
    const body = JSON.stringify({ query: CREATE, variables: user });
    const reply = await ask('writes', 'create by GraphQL', 'graphql', 'POST', '/graphql', body);
    if (reply === undefined) return undefined;
    const { data } = JSON.parse(reply.text) as { data: { createUser: { id: string } } };
    return Number(data.createUser.id);
  }
  /** Whether a change, or with undefined a deletion, was acknowledged. */
  async function change(id: number, to: UserContent | undefined): Promise<boolean> {
    ledger.changes(id, to);
    const reply =
      to === undefined
        ? await ask('writes', 'delete', 'rest', 'DELETE', `/delete/${id}`)
        : await ask('writes', 'update', 'rest', 'PUT', `/update/${id}`, JSON.stringify(to));
    if (reply !== undefined) ledger.changed(id, to);
    return reply !== undefined;
  }

  async function read(user: UserContent & { readonly id: number }): Promise<void> {
    const reply = await ask('reads', 'read', 'rest', 'GET', `/users/${user.id}`);
    if (reply !== undefined) assert.deepEqual(JSON.parse(reply.text), { status: 'success', data: user });
  }
  async function readByGraphql({ id, name, email }: UserContent & { readonly id: number }): Promise<void> {
    const body = JSON.stringify({ query: READ, variables: { id: String(id) } });
    const reply = await ask('reads', 'read by GraphQL', 'graphql', 'POST', '/graphql', body);
    if (reply === undefined) return;
    const { data } = JSON.parse(reply.text) as { data: { user: unknown } };
    assert.deepEqual(data.user, { id: String(id), name, email });
  }
  async function list(): Promise<void> {
    await ask('reads', 'list', 'rest', 'GET', '/users?limit=100&sort=-id');
  }
  async function manage(): Promise<void> {
    const path = random.pick(['/readyz', '/livez', '/actuator/prometheus', '/actuator/metrics/webhook.dead']);
    await ask('management', path, 'management', 'GET', path);
  }

  /** One connection; only it changes the users that it has created. */
  async function connection(): Promise<void> {
    const own: (UserContent & { readonly id: number })[] = [];
    while (!signal.aborted) {
      const kind = random.next();
      const place = random.below(own.length);
      const user = own[place];
      if (kind < 0.3) await deliver();
      else if (kind < 0.45 || user === undefined) {
        const created = await create();
        if (created !== undefined) own.push(created);
        // A forgotten user stays unchanged.
        if (own.length > MOST_OWN) own.shift();
      } else if (kind < 0.55) {
        const to = content();
        const isKnown = await change(user.id, to);
        // After a failure, it is unknown whether the user was changed.
        if (isKnown) own[place] = { id: user.id, ...to };
        else own.splice(place, 1);
      } else if (kind < 0.6) {
        await change(user.id, undefined);
        own.splice(place, 1);
      } else if (kind < 0.8) await read(user);
      else if (kind < 0.9) await readByGraphql(user);
      else if (kind < 0.95) await list();
      else await manage();
      await delay(random.below(pause));
    }
  }

  try {
    await Promise.all(Array.from({ length: connections }, connection));
  } finally {
    agent.destroy();
  }
}

/** Why a request failed; undefined if it succeeded. A GraphQL result with errors has status 200 too. */
function failureOf({ status, headers, text }: Reply, door: string): string | undefined {
  if (status !== 200) return `${status} ${headers['x-error-code'] ?? ''}`.trim();
  if (door !== 'graphql') return undefined;
  const { errors } = JSON.parse(text) as { errors?: readonly { readonly message: string }[] };
  return errors && `GraphQL: ${errors[0]?.message}`;
}
