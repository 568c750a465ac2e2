import assert from 'node:assert/strict';
import type { PorticoProcess } from '../../support/portico-process.ts';
import { seededRandom } from '../../support/random.ts';
import { waitFor } from '../../support/wait-for.ts';
import type { Reply } from '../kill/client.ts';
import type { StoreContent } from '../kill/ledger.ts';
import { RowHistory } from '../rows/history.ts';
import { type Ask, RowWriter } from '../rows/writer.ts';

/** What each kind of write answers when it cannot be stored: 503, and what the contract says. */
const REFUSALS: Readonly<Record<string, string>> = {
  POST: '{"status":"error","message":"Failed to create user"}',
  PUT: '{"status":"error","message":"Failed to update user"}',
  DELETE: '{"status":"error","message":"Failed to delete user"}',
};

/** `unknown`: it was refused, or its removal was, so that it may be there or not. */
interface SentUser {
  id?: number;
  state: 'stored' | 'removed' | 'unknown';
}

/** Sends writes to a process on a failing disk, checks every reply, and remembers what was acknowledged. */
export class DiskProbe {
  readonly portico: PorticoProcess;
  /** By name. */
  readonly #users = new Map<string, SentUser>();
  /** By token; true: acknowledged. */
  readonly #deliveries = new Map<string, boolean>();
  readonly #rows = new RowHistory();
  readonly #writer: RowWriter;
  #count = 0;

  constructor(portico: PorticoProcess) {
    this.portico = portico;
    this.#writer = new RowWriter(this.#rows, seededRandom(1), 'r', (...request) =>
      this.#relations(...request),
    );
  }

  get acknowledgedDeliveries(): number {
    return [...this.#deliveries.values()].filter((acknowledged) => acknowledged).length;
  }

  /** Creates a user; resolves to whether that was acknowledged. */
  async create(): Promise<boolean> {
    const name = `user-${++this.#count}`;
    const user: SentUser = { state: 'unknown' };
    this.#users.set(name, user);
    const reply = await this.#rest('POST', 'users', name);
    if (!reply.ok) return false;
    user.id = Number(/\/(\d+)$/.exec(reply.headers.get('location') ?? '')?.[1]);
    user.state = 'stored';
    return true;
  }

  /** Changes the address of a stored user; resolves to whether that was acknowledged. */
  async update(): Promise<boolean> {
    const [name, user] = this.#stored();
    return (await this.#rest('PUT', `update/${user.id}`, name)).ok;
  }

  /** Removes a stored user; resolves to whether that was acknowledged. */
  async remove(): Promise<boolean> {
    const [, user] = this.#stored();
    user.state = 'unknown';
    const { ok } = await this.#rest('DELETE', `delete/${user.id}`);
    if (ok) user.state = 'removed';
    return ok;
  }

  /** Writes rows of relations; resolves to whether that was acknowledged. */
  writeRows(): Promise<boolean> {
    return this.#writer.write();
  }

  #stored(): [string, SentUser] {
    const found = [...this.#users].find(([, { state }]) => state === 'stored');
    assert.ok(found !== undefined, 'no user is stored');
    return found;
  }

  /** Resolves to whether a delivery of so many bytes was acknowledged. */
  async deliver(size: number, event = 'new_commit'): Promise<boolean> {
    const token = `delivery-${++this.#count}`;
    this.#deliveries.set(token, false);
    const body = JSON.stringify({ event, data: { token, filling: 'x'.repeat(size) } });
    const reply = await fetch(`${this.portico.urls.webhook}/webhook`, { method: 'POST', body });
    const text = await reply.text();
    if (reply.status !== 200) {
      assert.equal(reply.status, 503, text);
      return false;
    }
    assert.equal(text, 'Webhook received');
    this.#deliveries.set(token, true);
    return true;
  }

  /** Fails unless reads and the liveness probe answer as ever. */
  async checkReads(): Promise<void> {
    const { rest, management } = this.portico.urls;
    const list = await fetch(`${rest}/users`);
    assert.equal(list.status, 200);
    const { data } = (await list.json()) as { data: readonly { id: number; name: string }[] };
    this.#checkUsers(new Map(data.map(({ id, name }) => [id, { name, email: 'a@b' }])));
    if (management !== undefined) assert.equal((await fetch(`${management}/livez`)).status, 200);
  }

  /** Resolves once the health endpoint and its components have these statuses: results are kept for a second. */
  async healthIs(expected: Readonly<Record<string, string>>): Promise<void> {
    await waitFor(`health to be ${JSON.stringify(expected)}`, async () => {
      const found = await this.health();
      return Object.entries(expected).every(([name, status]) => found[name] === status);
    });
  }

  /** Status and component statuses of the health endpoint. */
  async health(): Promise<Readonly<Record<string, string>>> {
    const reply = await fetch(`${this.portico.urls.management}/actuator/health`);
    const { status, components } = (await reply.json()) as {
      status: string;
      components: Readonly<Record<string, { status: string }>>;
    };
    assert.equal(reply.status, status === 'UP' ? 200 : 503);
    const parts = Object.entries(components).map(([name, component]) => [name, component.status]);
    return { whole: status, ...Object.fromEntries(parts) };
  }

  /** Fails unless everything that was acknowledged is stored, and nothing that was not sent. */
  check({ users, deliveries, rows }: StoreContent): void {
    this.#rows.check(rows);
    this.#checkUsers(users);
    for (const [token, acknowledged] of this.#deliveries) {
      assert.ok(!acknowledged || deliveries.has(token), `delivery ${token} was acknowledged and is lost`);
    }
    for (const token of deliveries.keys()) assert.ok(this.#deliveries.has(token), `nobody sent ${token}`);
  }

  #checkUsers(stored: StoreContent['users']): void {
    const ids = new Map([...stored].map(([id, { name }]) => [name, id]));
    for (const [name, { id, state }] of this.#users) {
      if (state === 'stored') assert.equal(ids.get(name), id, `user ${name} was acknowledged and is lost`);
      else if (state === 'removed') assert.ok(!ids.has(name), `user ${name} was removed and is there again`);
    }
    for (const name of ids.keys()) assert.ok(this.#users.has(name), `nobody sent ${name}`);
  }

  async #relations(...[method, path, body, headers = {}]: Parameters<Ask>): Promise<Reply | undefined> {
    const options = { method, body: body ?? null, headers: headers as Record<string, string> };
    const reply = await fetch(`${this.portico.urls.rest}${path}`, options);
    const text = await reply.text();
    if (reply.ok) return { status: reply.status, headers: Object.fromEntries(reply.headers), text };
    assert.equal(reply.status, 503, text);
    assert.equal((JSON.parse(text) as { code?: string }).code, 'STORE_UNAVAILABLE');
    return undefined;
  }

  async #rest(method: 'POST' | 'PUT' | 'DELETE', path: string, name?: string): Promise<Response> {
    const body = name === undefined ? {} : { body: JSON.stringify({ name, email: `${++this.#count}@b` }) };
    const reply = await fetch(`${this.portico.urls.rest}/${path}`, { method, ...body });
    const text = await reply.text();
    if (!reply.ok) {
      assert.equal(reply.status, 503, text);
      assert.equal(text, REFUSALS[method]);
    }
    return reply;
  }
}
