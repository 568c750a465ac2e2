import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { StoreUnavailableError } from '../../src/core/errors.ts';
import type { ClaimedJob } from '../../src/inbox/delivery.ts';
import type { Outcome } from '../../src/inbox/inbox.ts';
import type { Database } from '../../src/sql/database.ts';
import { engines } from '../support/databases.ts';
import { NOW, newDelivery } from '../support/new-delivery.ts';
import { proofCount } from '../support/proof-settings.ts';
import { type Random, seededRandom } from '../support/random.ts';

/** Random steps per engine and seed. */
const STEPS = proofCount('PORTICO_ORDER_STEPS', 150);
const LEASE = 50;
const KEYS = ['a', 'b', null];

/** Several processes on one database, which do at random all that changes the order of jobs. */
class Processes {
  readonly #database: Database;
  readonly #random: Random;
  readonly #keys = new Map<string, string | null>();
  /** The jobs that each process runs. */
  readonly #running = new Map<ClaimedJob, { readonly owner: string; readonly until: number }>();
  /** The deliveries that are discarded in this round: a claim beside may be answered after its job was discarded. */
  readonly #discarded = new Set<string>();
  now = NOW;

  constructor(database: Database, random: Random) {
    this.#database = database;
    this.#random = random;
  }

  /** Takes some steps at once. */
  async round(steps: number): Promise<void> {
    this.#discarded.clear();
    await Promise.all(Array.from({ length: steps }, () => this.#tryStep()));
  }

  /** Takes a step; a busy machine may take too long for it. */
  async #tryStep(): Promise<void> {
    try {
      await this.#step();
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
    }
  }

  async #step(): Promise<void> {
    const { deliveries, inbox } = this.#database;
    const id = this.#random.pick(['', ...this.#keys.keys()]);
    const job = [...this.#running.keys()][this.#random.below(this.#running.size)];
    const choice = this.#random.below(12);
    if (choice < 3) {
      const orderKey = KEYS[this.#random.below(KEYS.length)] ?? null;
      const delivery = newDelivery({ receivedAt: this.now, jobs: [{ target: 't', orderKey }] });
      this.#keys.set(delivery.id, orderKey);
      await inbox.append(delivery);
    } else if (choice < 6) await this.claim(`process ${choice}`, 1 + this.#random.below(4));
    else if (choice < 9 && job !== undefined) await this.#end(job, this.#outcome());
    else if (choice === 9) {
      await deliveries.replay(id, [{ target: 't', orderKey: this.#keys.get(id) ?? null }], this.now);
    } else if (choice === 10) {
      this.#discarded.add(id);
      for (const each of this.#running.keys()) if (each.delivery.id === id) this.#running.delete(each);
      await deliveries.discard(id, this.now);
    } else this.now += this.#random.below(LEASE);
  }

  /** Claims jobs, none of which has the order key of one that runs. */
  async claim(owner: string, limit: number, quarantined = false): Promise<readonly ClaimedJob[]> {
    const { now } = this;
    const jobs = await this.#database.inbox.claim('t', limit, owner, LEASE, { now, quarantined });
    for (const job of jobs) this.#begin(job, owner, now + LEASE);
    return jobs;
  }

  /** Ends what runs as done, and does the rest; resolves to the jobs of each key in the order in which they ran. */
  async drain(): Promise<readonly (readonly number[])[]> {
    this.now += 2 * LEASE;
    this.#running.clear();
    this.#discarded.clear();
    const order = new Map<string | null, number[]>();
    for (let idle = 0; idle < 3; this.now += 10) {
      const jobs = [...(await this.claim('last', 9)), ...(await this.claim('last', 9, true))];
      idle = jobs.length === 0 ? idle + 1 : 0;
      for (const job of jobs) {
        const key = this.#keys.get(job.delivery.id) ?? null;
        order.set(key, [...(order.get(key) ?? []), job.job]);
        await this.#end(job, { kind: 'done' });
      }
    }
    return [...order.entries()].filter(([key]) => key !== null).map(([, ran]) => ran);
  }

  #begin(job: ClaimedJob, owner: string, until: number): void {
    // It has learned of it so late that another one may have the job, or that it may be discarded.
    if (until <= this.now || this.#discarded.has(job.delivery.id)) return;
    const key = this.#keys.get(job.delivery.id) ?? null;
    for (const [other, { until: end }] of this.#running) {
      const isBeside = key !== null && this.#keys.get(other.delivery.id) === key && end > until - LEASE;
      assert.ok(!isBeside || other.job === job.job, `jobs ${other.job} and ${job.job} of ${key} run at once`);
      if (end <= until - LEASE) this.#running.delete(other);
    }
    this.#running.set(job, { owner, until });
  }

  async #end(job: ClaimedJob, outcome: Outcome): Promise<void> {
    const { inbox } = this.#database;
    const owner = this.#running.get(job)?.owner ?? 'last';
    this.#running.delete(job);
    const isOver = outcome.kind === 'done' || outcome.kind === 'dead';
    if (!isOver || owner === 'last' || this.#random.chance(0.5)) {
      await inbox.settle(job, owner, outcome, this.now);
      return;
    }
    const { now } = this;
    const { next } = await inbox.finish(job, owner, outcome, { lease: LEASE, maxBytes: 1_000 }, now);
    if (next !== undefined) this.#begin(next, owner, now + LEASE);
  }

  #outcome(): Outcome {
    const error = 'x';
    const wait = this.#random.below(LEASE);
    const all: readonly Outcome[] = [
      { kind: 'done' },
      { kind: 'dead', error },
      { kind: 'retry', wait, error },
      { kind: 'released' },
      { kind: 'crashed' },
    ];
    return this.#random.pick(all);
  }
}

for (const [engine, open] of Object.entries(engines)) {
  describe(`order whatever happens in ${engine}`, () => {
    for (const seed of [1, 2, 3]) {
      test(`one job of a key at a time, none forgotten, seed ${seed}`, async () => {
        await using database = await open();
        const processes = new Processes(database.current, seededRandom(seed));
        // On PostgreSQL several at once: what each of them sees is as of its own beginning.
        const beside = engine === 'postgres' ? 4 : 1;
        for (let i = 0; i < STEPS; i++) await processes.round(beside);
        for (const ran of await processes.drain()) {
          assert.deepEqual(
            ran.slice(1),
            ran.slice(1).toSorted((a, b) => a - b),
            'in order of arrival',
          );
        }
        assert.equal((await database.current.inbox.backlog()).open, 0);
      });
    }
  });
}
