import assert from 'node:assert/strict';
import { Agent, type OutgoingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Machine, PatroniCluster } from '../../support/patroni.ts';
import { type PorticoProcess, startPortico } from '../../support/portico-process.ts';
import type { Random } from '../../support/random.ts';
import { waitFor } from '../../support/wait-for.ts';
import { type Reply, send } from '../kill/client.ts';
import type { Ledger, UserContent } from '../kill/ledger.ts';
import type { LoadResult } from '../replicas/load.ts';
import { RowWriter } from '../rows/writer.ts';
import { sql } from './guide.ts';

interface ReaderOptions {
  readonly cwd: string;
  /** The URLs of the primary and of the replicas. */
  readonly settings: Readonly<Record<string, string>>;
  readonly ledger: Ledger;
  readonly random: Random;
}

/** Users and changes of rows that are written in turn, each of which is read at once. */
const BURST = 5;
/** Between two bursts there are reads alone, so that replicas have what was written, in milliseconds. */
const PAUSE = 4_000;
const THINK = 20;

/** A process that reads users and rows from the replicas, and a client that reads by it what it has written by it. */
export class ReplicaReader implements AsyncDisposable {
  readonly portico: PorticoProcess;
  /** Rejects once a reply is wrong: the process does not have what was written by it. */
  readonly working: Promise<void>;
  reads = 0;
  #asked = 0;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #options: ReaderOptions;
  readonly #result: LoadResult;
  readonly #written: (UserContent & { readonly id: number })[] = [];
  readonly #rows: RowWriter;
  #isEnded = false;

  private constructor(portico: PorticoProcess, options: ReaderOptions, result: LoadResult) {
    this.portico = portico;
    this.#options = options;
    this.#result = result;
    const { ledger, random } = options;
    this.#rows = new RowWriter(ledger.rows, random, 'reader', this.#ask.bind(this));
    this.working = this.#work();
    // Whoever waits for it hears of it.
    this.working.catch(() => {});
  }

  /** Notes what it creates in the ledger and the result. */
  static async start(options: ReaderOptions, result: LoadResult): Promise<ReplicaReader> {
    const { cwd, settings } = options;
    const portico = startPortico({
      cwd,
      env: {
        ...settings,
        INTERFACES: 'rest',
        CONFIG: join(import.meta.dirname, '../kill/handlers.ts'),
        RUN: 'reader',
      },
    });
    try {
      await portico.ready();
      return new ReplicaReader(portico, options, result);
    } catch (error) {
      await portico[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Resolves once a replica among these machines was read after this call, to the machine. */
  async readsFrom(cluster: PatroniCluster, machines: readonly Machine[], within: number): Promise<Machine> {
    const since = Date.now();
    const wasRead = async (machine: Machine) => {
      const rows = await sql(
        cluster.url('portico', machine),
        `SELECT 1 FROM pg_stat_activity WHERE pg_is_in_recovery() AND usename = 'portico'
          AND query LIKE '%FROM users%' AND query_start > to_timestamp(${since} / 1000.0)`,
      ).catch(() => []);
      return rows.length > 0;
    };
    return waitFor(
      'a replica to be read',
      async () => {
        for (const machine of machines) if (await wasRead(machine)) return machine;
        return undefined;
      },
      within,
    );
  }

  /** Ends the client; rejects as `working` does. */
  async end(): Promise<void> {
    this.#isEnded = true;
    await this.working;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnded = true;
    await this.working.catch(() => {});
    this.#agent.destroy();
    await this.portico[Symbol.asyncDispose]();
  }

  async #work(): Promise<void> {
    const { random } = this.#options;
    while (!this.#isEnded) {
      for (let i = 0; i < BURST && !this.#isEnded; i++) {
        const user = await this.#create();
        if (user !== undefined) await this.#read(user);
        if (await this.#rows.write()) await this.#rows.read();
      }
      for (const end = performance.now() + PAUSE; performance.now() < end && !this.#isEnded; ) {
        const { length } = this.#written;
        await this.#read(this.#written[random.chance(0.5) ? length - 1 : random.below(length)]);
        await this.#rows.read();
        await delay(random.below(THINK));
      }
    }
  }

  async #create(): Promise<(UserContent & { readonly id: number }) | undefined> {
    const { ledger, random } = this.#options;
    const user = { name: `read${++this.#asked}`, email: `${random.below(1e9)}@example.org` };
    const before = ledger.highestId;
    const sentAt = performance.now();
    ledger.creates(user);
    const reply = await this.#ask('POST', '/users', JSON.stringify(user));
    if (reply === undefined) return undefined;
    assert.equal(reply.status, 200, reply.text);
    const id = Number(/^\/users\/(\d+)$/.exec(reply.headers.location ?? '')?.[1]);
    ledger.created(id, user, before);
    this.#result.created.push({ id, sentAt, answeredAt: performance.now() });
    const written = { id, ...user };
    this.#written.push(written);
    return written;
  }

  async #read(user: (UserContent & { readonly id: number }) | undefined): Promise<void> {
    if (user === undefined) return;
    const reply = await this.#ask('GET', `/users/${user.id}`);
    if (reply === undefined) return;
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual(JSON.parse(reply.text), { status: 'success', data: user });
    this.reads++;
  }

  /** Undefined: the service could not tell, or there was no reply. */
  async #ask(
    method: string,
    path: string,
    body?: string,
    headers: OutgoingHttpHeaders = {},
  ): Promise<Reply | undefined> {
    const all = { 'content-type': 'application/json', ...headers };
    const url = `${this.portico.urls.rest}${path}`;
    const reply = await send(this.#agent, method, url, body, all).catch(() => undefined);
    return reply?.status === 503 ? undefined : reply;
  }
}
