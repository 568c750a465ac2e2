import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { PorticoProcess } from '../../support/portico-process.ts';
import type { Random } from '../../support/random.ts';
import { type Reply, send } from '../kill/client.ts';
import type { KnownEndpoint, KnownEvent, SendingLedger, Wishes } from './ledger.ts';

interface LoadOptions {
  /** The process that gets the next request; undefined while none runs. */
  next(): PorticoProcess | undefined;
  readonly ledger: SendingLedger;
  readonly random: Random;
  /** The address of the receiver. */
  readonly receiver: string;
  readonly signal: AbortSignal;
  /** Called when a publication was acknowledged. */
  onAcknowledged(): void;
}

const CONNECTIONS = 8;
/** What a connection waits after each request, up to so many milliseconds. */
const THINK = 40;
const TENANTS = ['acme', 'globex', 'initech'];
const TYPES = ['invoice.paid', 'invoice.line.added', 'order.made', 'order', 'user'];
const PATTERNS = [...TYPES, '*', 'invoice.*', 'order.*'];
const CHANNELS = ['eu', 'us', 'asia'];
/** Keys of ordered events of a tenant. */
const KEYS = 4;
/** Endpoints of a tenant that are asked for, until others are removed. */
const ENDPOINTS = 8;

/**
 * Publishes events while it makes, changes, disables and removes endpoints, until it is told to stop. An event without an
 * answer is published again under its key. Rejects when a reply is wrong.
 */
export async function runSendingLoad(options: LoadOptions): Promise<void> {
  const { next, ledger, random, receiver, signal, onAcknowledged } = options;
  const agent = new Agent({ keepAlive: true });
  let made = 0;

  async function ask(method: string, path: string, body?: object, key?: string): Promise<Reply | undefined> {
    const portico = next();
    if (portico === undefined) {
      await delay(20);
      return undefined;
    }
    const headers = {
      'content-type': 'application/json',
      ...(key !== undefined && { 'idempotency-key': key }),
    };
    const text = body === undefined ? undefined : JSON.stringify(body);
    return send(agent, method, `${portico.urls.rest}${path}`, text, headers).catch(() => undefined);
  }
  /** Whether nothing was done: the service says so. */
  const isRefused = (reply: Reply | undefined) =>
    reply?.status === 409 || (reply?.status === 503 && reply.headers['retry-after'] !== undefined);

  function wishes(): Wishes {
    const some = (list: readonly string[]) => [...new Set([random.pick(list), random.pick(list)])];
    return {
      enabled: true,
      types: random.chance(0.5) ? some(PATTERNS) : null,
      channels: random.chance(0.2) ? some(CHANNELS) : null,
      least: random.chance(0.3) ? random.below(100) : null,
    };
  }
  const written = ({ least, ...rest }: Wishes) => ({
    ...rest,
    filter: least === null ? null : { amount: { gte: least } },
  });
  const withoutNulls = (given: object) =>
    Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));

  /** Sends a change of an endpoint. */
  async function change(
    endpoint: KnownEndpoint,
    to: Wishes | undefined,
    request: () => Promise<Reply | undefined>,
    status: number,
  ): Promise<Reply | undefined> {
    const entry = { sentAt: performance.now(), answeredAt: Number.POSITIVE_INFINITY, wishes: to };
    endpoint.changes.push(entry);
    endpoint.isBusy = true;
    const reply = await request();
    endpoint.isBusy = false;
    if (isRefused(reply)) endpoint.changes.splice(endpoint.changes.indexOf(entry), 1);
    else if (reply !== undefined && reply.status !== 503) {
      assert.equal(reply.status, status, reply.text);
      entry.answeredAt = performance.now();
      return reply;
    }
    return undefined;
  }

  async function create(tenant: string): Promise<void> {
    const path = `${tenant}-${++made}`;
    const isOrdered = random.chance(0.4);
    const endpoint: KnownEndpoint = { tenant, path, isOrdered, id: undefined, isBusy: false, changes: [] };
    ledger.endpoints.push(endpoint);
    const to = wishes();
    const settings = {
      url: `${receiver}/${path}`,
      ...(isOrdered && { order: '/data/key' }),
      ...withoutNulls(written(to)),
    };
    const reply = await change(
      endpoint,
      to,
      () => ask('POST', `/webhooks/tenants/${tenant}/endpoints`, settings),
      201,
    );
    if (reply === undefined) return;
    endpoint.id = (JSON.parse(reply.text) as { readonly id: string }).id;
    // An event that follows at once, through another process if there is one, reaches it.
    await publish(tenant);
  }

  async function alter(endpoint: KnownEndpoint): Promise<void> {
    const at = `/webhooks/tenants/${endpoint.tenant}/endpoints/${endpoint.id}`;
    const kind = random.next();
    if (kind < 0.2) await change(endpoint, undefined, () => ask('DELETE', at), 204);
    else {
      const to = { ...wishes(), enabled: kind > 0.35 };
      await change(endpoint, to, () => ask('PATCH', at, written(to)), 200);
    }
    await publish(endpoint.tenant);
  }

  async function publish(tenant: string): Promise<void> {
    const token = `e${++made}`;
    const event: KnownEvent = {
      token,
      tenant,
      type: random.pick(TYPES),
      channels: random.chance(0.5) ? [random.pick(CHANNELS)] : [],
      data: { token, key: random.below(KEYS), amount: random.below(100) },
      id: undefined,
      sentAt: performance.now(),
      answeredAt: Number.POSITIVE_INFINITY,
    };
    ledger.events.push(event);
    for (let tries = 0; tries < 50; tries++) {
      const { type, channels, data } = event;
      const reply = await ask('POST', '/events', { tenant, type, data, channels }, token);
      if (reply !== undefined && reply.status !== 503) {
        assert.ok(reply.status === 202 || reply.status === 200, reply.text);
        event.id = (JSON.parse(reply.text) as { readonly id: string }).id;
        event.answeredAt = performance.now();
        onAcknowledged();
        return;
      }
      if (signal.aborted) return;
      await delay(20);
    }
  }

  async function connection(): Promise<void> {
    while (!signal.aborted) {
      const tenant = random.pick(TENANTS);
      const own = ledger.endpoints.filter((each) => {
        return each.tenant === tenant && each.id !== undefined && each.changes.at(-1)?.wishes !== undefined;
      });
      const free = own.filter(({ isBusy }) => !isBusy);
      if (own.length < ENDPOINTS && random.chance(0.4)) await create(tenant);
      else if (free.length > 0 && random.chance(0.15)) await alter(random.pick(free));
      else await publish(tenant);
      await delay(random.below(THINK));
    }
  }

  try {
    await Promise.all(Array.from({ length: CONNECTIONS }, connection));
  } finally {
    agent.destroy();
  }
}
