import assert from 'node:assert/strict';
import { Agent, type OutgoingHttpHeaders } from 'node:http';
import type { Random } from '../../support/random.ts';
import { type Reply, send } from '../kill/client.ts';
import type { UserContent } from '../kill/ledger.ts';
import { RowWriter } from '../rows/writer.ts';
import type { History, Sent } from './history.ts';

export interface WriteOptions {
  /** Base URLs of the doors. */
  readonly rest: string;
  readonly webhook: string;
  readonly history: History;
  readonly random: Random;
  /** Begins every token and name. */
  readonly prefix: string;
  /** How many writes. */
  readonly count: number;
  /** Whether the server may refuse writes and go away; nothing more is sent then. */
  readonly mayFail: boolean;
}

const CONNECTIONS = 8;

/** So many of the deliveries are large, so that the log grows until it is folded into the file. */
const LARGE = 0.5;

/** Sends writes of all kinds over several connections, one at a time on each. */
export async function sendWrites(options: WriteOptions): Promise<void> {
  const { rest, webhook, history, random, prefix, count, mayFail } = options;
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  let sent = 0;
  let failed = false;

  /** The reply; undefined if the write failed. */
  async function ask(
    method: string,
    url: string,
    body?: string,
    headers?: OutgoingHttpHeaders,
  ): Promise<Reply | undefined> {
    try {
      const reply = await send(agent, method, url, body, headers);
      if ([200, 201, 204].includes(reply.status)) return reply;
      assert.equal(reply.status, 503, reply.text);
    } catch (error) {
      if (!mayFail || error instanceof assert.AssertionError) throw error;
    }
    assert.ok(mayFail, 'the write failed');
    failed = true;
    return undefined;
  }
  function acknowledge(write: Sent, reply: Reply | undefined): void {
    if (reply !== undefined) write.acknowledgedBy = String(reply.headers['x-request-id']);
  }

  async function deliver(token: string): Promise<void> {
    const event = random.pick(['new_commit', 'nobody']);
    const filling = 'x'.repeat(random.chance(LARGE) ? 60_000 : random.below(400));
    const body = JSON.stringify({ event, data: { token, filling } });
    acknowledge(history.sendsDelivery(token, event, body), await ask('POST', `${webhook}/webhook`, body));
  }
  async function create(user: UserContent): Promise<number | undefined> {
    history.creates.set(user.name, user);
    const reply = await ask('POST', `${rest}/users`, JSON.stringify(user));
    if (reply === undefined) return undefined;
    const id = Number(/\/(\d+)$/.exec(reply.headers.location ?? '')?.[1]);
    acknowledge(history.sendsUser(id, user), reply);
    return id;
  }
  async function change(id: number, to: UserContent | undefined): Promise<void> {
    const write = history.sendsUser(id, to);
    const reply =
      to === undefined
        ? await ask('DELETE', `${rest}/delete/${id}`)
        : await ask('PUT', `${rest}/update/${id}`, JSON.stringify(to));
    acknowledge(write, reply);
  }

  async function connection(_: unknown, number: number): Promise<void> {
    const own: number[] = [];
    const rows = new RowWriter(history.rows, random, `${prefix}-${number}`, (method, path, body, headers) =>
      ask(method, `${rest}${path}`, body, headers),
    );
    while (sent < count && !failed) {
      const name = `${prefix}-${++sent}`;
      const user = { name, email: `${random.below(1e9)}@example.org` };
      const id = own[random.below(own.length)];
      const kind = random.next();
      if (kind < 0.3) await deliver(name);
      else if (kind < 0.6) await rows.write();
      else if (kind < 0.75 || id === undefined) {
        const created = await create(user);
        if (created !== undefined) own.push(created);
      } else if (kind < 0.9) await change(id, user);
      else {
        await change(id, undefined);
        own.splice(own.indexOf(id), 1);
      }
    }
  }

  try {
    await Promise.all(Array.from({ length: CONNECTIONS }, connection));
  } finally {
    agent.destroy();
  }
}
