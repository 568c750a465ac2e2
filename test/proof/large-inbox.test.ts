import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { prune } from '../../src/inbox/dispatch/retention.ts';
import type { Inbox } from '../../src/inbox/inbox.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { PRUNE } from '../../src/sql/postgres-inbox/prune.ts';
import { withoutPostgres } from '../support/databases.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { proofCount } from '../support/proof-settings.ts';
import { BULK_SETTINGS, fill } from './large-inbox/fill.ts';

const ROWS = proofCount('PORTICO_LARGE_INBOX', 20_000, 20_000);
const SMALL = 2_000;
const OPEN_EVERY = 1_000;
const DAYS = 40;
const DAY = 24 * 60 * 60 * 1_000;
/** Each look-up in a higher index takes a page or two more; nothing takes one more for each row. */
function assertNoMore(pages: readonly number[], few: readonly number[]): void {
  const grown = pages.filter((count, i) => count > 2 * (few[i] ?? 0));
  assert.deepEqual(grown, [], `${few} pages, then ${pages}`);
}

const TIMEOUT = 60 * 60 * 1_000;

describe('retention in a large inbox', { skip: withoutPostgres ?? false, timeout: TIMEOUT }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres({ settings: BULK_SETTINGS });
  });
  after(() => server[Symbol.asyncDispose]());

  /** A database with that many deliveries of the last forty days. */
  async function filled(rows: number) {
    const url = await server.createDatabase();
    await (await openDatabase(url))[Symbol.asyncDispose]();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const now = Date.now();
    await fill(client, { rows, body: 96, since: now - DAYS * DAY, days: DAYS, openEvery: OPEN_EVERY });
    return { url, client, now, [Symbol.asyncDispose]: () => client.end() };
  }

  /** The pages that a step of each rule touches. */
  async function pagesOf(client: pg.Client, now: number): Promise<readonly number[]> {
    const pages: number[] = [];
    await client.query('SET enable_seqscan = off; SET jit = off');
    for (const [kind, more] of [
      ['ended', null] as const,
      ['excess', 0] as const,
      ['unhandled', now] as const,
    ]) {
      await client.query('BEGIN');
      const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${PRUNE[kind].text}`, [
        kind,
        now,
        more,
        0,
      ]);
      await client.query('ROLLBACK');
      const plan = rows[0]['QUERY PLAN'][0].Plan;
      pages.push(Number(plan['Shared Hit Blocks']) + Number(plan['Shared Read Blocks']));
    }
    return pages;
  }

  test(`removes what is old, in steps that cost the same at any size (${ROWS} deliveries)`, async (t) => {
    await using small = await filled(SMALL);
    const few = await pagesOf(small.client, small.now);
    await using large = await filled(ROWS);
    const many = await pagesOf(large.client, large.now);
    t.diagnostic(`pages of a step: ${few} with ${SMALL} deliveries, ${many} with ${ROWS}`);
    assertNoMore(many, few);

    await using database = await openDatabase(large.url);
    const times: number[] = [];
    const timed = async <T>(step: () => Promise<T>) => {
      const started = performance.now();
      const taken = await step();
      times.push(performance.now() - started);
      return taken;
    };
    const inbox: Pick<Inbox, 'prune' | 'forgetKeys'> = {
      prune: (rule) => timed(() => database.inbox.prune(rule)),
      forgetKeys: (...given) => database.inbox.forgetKeys(...given),
    };
    const settings = { maxAge: 30 * DAY, maxBytes: 0, dedupAge: 0 };
    const removed = await prune({ inbox, ...settings }, large.now);
    t.diagnostic(`removed ${removed} in steps of ${timesOf(times)}`);
    const { rows } = await large.client.query(
      `SELECT count(*)::int AS rest, count(*) FILTER (WHERE status = 'open')::int AS open,
         count(*) FILTER (WHERE finished_at < $1)::int AS old
       FROM deliveries AS d JOIN jobs ON jobs.delivery = d.seq`,
      [large.now - 30 * DAY],
    );
    const { rest, open, old } = rows[0];
    assert.deepEqual(
      { removed, open, old },
      { removed: ROWS - rest, open: Math.floor(ROWS / OPEN_EVERY), old: 0 },
    );
    assert.ok(removed >= ROWS / 5);
    // No vacuum has cleared what was removed.
    const behind = await pagesOf(large.client, large.now);
    t.diagnostic(`pages of a step behind them: ${behind}`);
    assertNoMore(behind, few);
  });
});

/** Median, 99th percentile and maximum of times in milliseconds, as text. */
function timesOf(times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (part: number) =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0).toFixed(1);
  return `${at(0.5)} ms (p99 ${at(0.99)}, at most ${at(1)})`;
}
