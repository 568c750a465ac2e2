import { randomUUIDv7 } from 'node:crypto';
import type { RemovalRule } from '../../../src/inbox/prune.ts';
import { openDatabase } from '../../../src/sql/open.ts';
import { appendAll } from '../../../src/sql/postgres-inbox/append.ts';
import { claimJobs } from '../../../src/sql/postgres-inbox/claim.ts';
import { pruneStep } from '../../../src/sql/postgres-inbox/prune.ts';
import type { Server } from '../../../src/sql/postgres-pool/server.ts';
import { newDelivery } from '../../support/new-delivery.ts';
import { startPostgres } from '../../support/postgres.ts';
import { dropDays } from './day-drops.ts';
import { BULK_SETTINGS, fill } from './fill.ts';
import { bodiesByDay, jobsByDay, type Layout, plain, slotAt } from './layouts.ts';
import { oneConnection, timed } from './one-connection.ts';

// Compares ways to store many deliveries: node test/proof/large-inbox/compare.ts [rows] [bytes of a body] [layout]
const DAY = 24 * 60 * 60 * 1_000;
const DAYS = 30;
const [rows = 20_000, body = 992] = process.argv.slice(2, 4).map(Number);
const only = process.argv[4];
const say = (line: string) => process.stdout.write(`${line}\n`);
const BATCH = 31;
const OPEN_EVERY = 100;
const CLAIM = { target: 't', limit: 64, lease: 60_000, held: [], maxBytes: 16e6, suspects: false, now: null };
const bytes = Buffer.alloc(body, 'x');

const append = (server: Server, layout: Layout) => () =>
  appendAll(
    server,
    Array.from({ length: BATCH }, () => ({
      delivery: newDelivery({
        source: 'source',
        dedupKey: randomUUIDv7(),
        body: bytes,
        receivedAt: Date.now(),
        jobs: [{ target: 'new', orderKey: null }],
      }),
    })),
    layout.bodies ? 'slots' : 'rows',
  );

async function measure(name: string, layout: Layout, url: string): Promise<void> {
  await (await openDatabase(url))[Symbol.asyncDispose]();
  await using connection = await oneConnection(url, layout);
  const { client, server } = connection;
  const now = Date.now();
  await client.query('SET statement_timeout = 0');
  if (layout.tables !== '') await client.query(layout.tables);
  await fill(client, layout, { rows, body, since: now - DAYS * DAY, days: DAYS, openEvery: OPEN_EVERY });
  await client.query('SET statement_timeout = 5000');
  const sized = await client.query('SELECT pg_database_size(current_database()) AS bytes');
  say(`${name}: ${rows} deliveries of ${body} bytes, ${(sized.rows[0].bytes / rows).toFixed(0)} bytes each`);

  const before = now - (DAYS - 1) * DAY;
  const step = (rule: RemovalRule) => () => pruneStep(server, rule);
  const claims = Math.max(10, Math.min(300, Math.floor(rows / OPEN_EVERY / 64 / 2)));
  const steps = Math.max(10, Math.min(2_000, Math.floor(rows / DAYS / 200) - 20));
  const work = [
    ['append of 31', 300, BATCH, append(server, layout)],
    ['claim of 64', claims, 64, () => claimJobs(server, { ...CLAIM, owner: randomUUIDv7() })],
    ['retention of 200, ended', steps, 200, step({ kind: 'ended', before, remember: 0 })],
    ['retention of 200, unhandled', steps, 200, step({ kind: 'unhandled', before, now })],
  ] as const;
  // Retention would need statements of its own there.
  for (const [label, count, per, run] of layout.job === undefined ? work : work.slice(0, 2)) {
    await client.query('CHECKPOINT');
    say(`  ${label}: ${await timed(client, count, per, run)}`);
  }
  if (layout.bodies) {
    await using other = await oneConnection(url, layout);
    for (const line of await dropDays(client, slotAt(now - 20 * DAY), append(other.server, layout)))
      say(`  ${line}`);
  }
}

await using server = await startPostgres({ settings: BULK_SETTINGS });
for (const [name, layout] of Object.entries({ plain, bodiesByDay, jobsByDay })) {
  if (only !== undefined && only !== name) continue;
  const url = await server.createDatabase();
  await measure(name, layout, url);
  await server.sql(`DROP DATABASE ${new URL(url).pathname.slice(1)} WITH (FORCE)`);
}
