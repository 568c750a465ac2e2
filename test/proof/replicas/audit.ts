import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { PostgresServer } from '../../support/postgres.ts';
import { waitFor } from '../../support/wait-for.ts';
import { checkEffects, readEffects, TRACED } from '../kill/effects.ts';
import type { Ledger } from '../kill/ledger.ts';
import type { StoredJob } from '../kill/store-reader.ts';
import type { Group } from './group.ts';
import type { LoadResult } from './load.ts';
import { checkConcurrentOrder } from './order.ts';
import { readContent, readJobs } from './store.ts';

/** What a comparison says of a loss; the next write of a row that is gone is a 404. */
export const LOSS =
  /is lost|lost:|should be|not told|deep-equal|came after|second time|stored twice|"status":404/;

export interface AuditOptions {
  readonly folder: string;
  readonly ledger: Ledger;
  readonly sql: (text: string) => ReturnType<PostgresServer['sql']>;
}

/** Compares what clients were told with what is stored, and with what handlers and subscribers saw. */
export class Audit {
  readonly #effects: string;
  readonly #ledger: Ledger;
  readonly #sql: AuditOptions['sql'];
  readonly #done = new Map<number, StoredJob>();

  constructor({ folder, ledger, sql }: AuditOptions) {
    this.#effects = join(folder, 'effects.log');
    this.#ledger = ledger;
    this.#sql = sql;
  }

  /** Looks at the jobs now: what was seen as done once stays as it is. */
  async jobs(): Promise<void> {
    for (const job of await readJobs(this.#sql)) {
      const before = this.#done.get(job.seq);
      if (before !== undefined) assert.deepEqual(job, before, 'what is done stays as it is');
      else if (job.status === 'done') this.#done.set(job.seq, job);
    }
  }

  /** Waits until every delivery that is acknowledged now is handled; resolves to how long that took, in milliseconds. */
  async handled(within: number): Promise<number> {
    const began = performance.now();
    const tokens = [...this.#ledger.deliveries].flatMap(([token, { event, known }]) =>
      known === 'acknowledged' && TRACED.has(event) ? [token] : [],
    );
    await waitFor(
      'all deliveries to be handled',
      () => {
        const effects = readEffects(this.#effects);
        return tokens.every((token) => effects.get(token)?.some(({ ended }) => ended));
      },
      within,
    );
    return performance.now() - began;
  }

  /** At the end, when nobody writes any more: everything. Resolves to how many deliveries were handled again. */
  async all(group: Group, { created, ordered, refused }: LoadResult): Promise<number> {
    for (const subscriber of group.subscribers) {
      await waitFor('the subscribers to be told', () => subscriber.missing(created).length === 0).catch(() =>
        assert.fail(`users were not told: ${JSON.stringify(subscriber.missing(created))}`),
      );
      subscriber.check();
    }
    await waitFor(
      'all jobs to be done',
      async () => (await this.#sql(`SELECT 1 FROM jobs WHERE status = 'open' LIMIT 1`)).length === 0,
    );
    await this.jobs();
    const content = await readContent(this.#sql);
    for (const { name } of content.users.values()) assert.ok(!refused.has(name), `${name} was refused`);
    for (const token of content.deliveries.keys()) assert.ok(!refused.has(token), `${token} was refused`);
    this.#ledger.reconcile(content);
    const jobs = await readJobs(this.#sql);
    const effects = readEffects(this.#effects);
    // What is done stays as it is, so an attempt after that would be one too many.
    for (const { token, attempts } of jobs) {
      for (const { attempt } of effects.get(token) ?? [])
        assert.ok(attempt <= attempts, `${token} is done again`);
    }
    checkEffects(jobs, effects, new Map());
    checkConcurrentOrder(ordered, effects);
    return [...effects.values()].filter((attempts) => attempts.filter(({ ended }) => ended).length > 1)
      .length;
  }
}
