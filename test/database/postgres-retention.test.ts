import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { openDatabase } from '../../src/sql/open.ts';
import { PRUNE, WINDOW } from '../../src/sql/postgres-inbox/prune.ts';
import { SENDING_LOG_QUERIES } from '../../src/sql/stores/sending-log.ts';
import { withoutPostgres } from '../support/databases.ts';
import { type PostgresDatabases, sharedPostgres } from '../support/postgres.ts';
import { waitFor } from '../support/wait-for.ts';

interface Plan {
  readonly 'Node Type': string;
  readonly 'Index Name'?: string;
  readonly 'Relation Name'?: string;
  readonly 'Index Cond'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Plan[];
}

const nodes = (plan: Plan): readonly Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodes)];
const SETTINGS = 'SET enable_seqscan = off; SET jit = off';
const COUNT = 20_000;

/** Behind 200 deliveries that nobody handles a third each is open, dead and done; all ended at the same time. */
const FILL = `
  INSERT INTO deliveries (id, source, data_pointer, body, received_at)
  SELECT lpad(n::text, 9, '0'), '', '', '\\x00', n FROM generate_series(1, ${COUNT}) AS n;
  INSERT INTO jobs (delivery, target, status, due_at, finished_at)
  SELECT n, 't', (ARRAY['open', 'dead', 'done'])[1 + n * 3 / (${COUNT} + 1)], 0,
    CASE WHEN n * 3 / (${COUNT} + 1) > 0 THEN 1 END
  FROM generate_series(201, ${COUNT}) AS n;
  INSERT INTO attempts (job, attempt, outcome, started_at, process)
  SELECT seq, 1, 'dead', 0, 'p' FROM jobs;
  INSERT INTO inbox_size VALUES (0, 1000000000);
  UPDATE retention_cursors SET at = 1, seq = ${COUNT} / 2 WHERE rule <> 'unhandled'`;

describe('retention in a large PostgreSQL', { skip: withoutPostgres ?? false }, () => {
  let server: PostgresDatabases;
  before(async () => {
    server = await sharedPostgres();
  });
  after(() => server[Symbol.asyncDispose]());

  for (const analyzed of [false, true]) {
    test(`a step looks up bounded numbers of rows by index, ${analyzed ? 'with' : 'without'} statistics`, async () => {
      const url = await server.createDatabase();
      await (await openDatabase(url))[Symbol.asyncDispose]();
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      try {
        await client.query(FILL);
        if (analyzed) await client.query('ANALYZE');
        await client.query(SETTINGS);
        const cases = [
          ['ended', COUNT, null],
          ['excess', COUNT, 0],
          ['unhandled', COUNT, COUNT],
        ] as const;
        for (const [kind, edge, more] of cases) {
          await client.query('BEGIN');
          const { rows } = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${PRUNE[kind].text}`, [
            kind,
            edge,
            more,
            0,
          ]);
          await client.query('ROLLBACK');
          const plan = (rows[0] as { 'QUERY PLAN': readonly { Plan: Plan }[] })['QUERY PLAN'][0]?.Plan;
          assert.ok(plan);
          const scans = nodes(plan).filter((node) =>
            /^(deliveries|jobs|attempts)$/.test(node['Relation Name'] ?? ''),
          );
          const reads = scans.filter((node) => /Scan/.test(node['Node Type']));
          assert.ok(reads.length >= 3, kind);
          for (const node of reads) {
            assert.match(node['Node Type'], /Index|Bitmap Heap/, `${kind}: ${JSON.stringify(node)}`);
            assert.ok(
              node['Index Cond'] ?? node['Node Type'] === 'Bitmap Heap Scan',
              `${kind}: ${JSON.stringify(node)}`,
            );
            const visited =
              (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
            assert.ok(visited <= WINDOW, `${kind}: ${visited} rows`);
          }
        }
      } finally {
        await client.end();
      }
    });
  }

  test('the limit of size begins where age has ended, not at entries that age has removed', async () => {
    const url = await server.createDatabase();
    await (await openDatabase(url))[Symbol.asyncDispose]();
    await server.sql(`${FILL}; UPDATE retention_cursors SET at = 0, seq = 0 WHERE rule = 'excess'`, url);
    await using database = await openDatabase(url);
    const step = await database.inbox.prune({ kind: 'excess', before: COUNT, maxBytes: 0 });
    assert.equal(step.looked, WINDOW);
    const cursor = await server.sql(`SELECT seq FROM retention_cursors WHERE rule = 'excess'`, url);
    assert.equal(Number(cursor[0]?.[0]), COUNT / 2 + WINDOW);
  });

  test('a delivery stays while it has a job, also one that is being added as retention removes it', async () => {
    const url = await server.createDatabase();
    await using database = await openDatabase(url);
    await server.sql(
      `INSERT INTO deliveries (id, source, data_pointer, body, received_at) VALUES ('a', 'tenant:t', '', '', 1);
      INSERT INTO jobs (delivery, target, status, due_at, finished_at) SELECT seq, 'done', 'done', 0, 1 FROM deliveries`,
      url,
    );
    await assert.rejects(server.sql('DELETE FROM deliveries', url), { code: '23503' });
    const adding = new pg.Client({ connectionString: url });
    await adding.connect();
    try {
      const [[seq] = []] = await server.sql('SELECT seq FROM deliveries', url);
      await adding.query('BEGIN');
      const added = ['endpoint:t/e', null, JSON.stringify([[seq, null]])];
      assert.equal((await adding.query(SENDING_LOG_QUERIES.add.postgres, added)).rowCount, 1);
      const step = database.inbox.prune({ kind: 'ended', before: 2 });
      const blocked = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '${new URL(url).pathname.slice(1)}'`;
      await waitFor('retention at the lock', async () => (await server.sql(blocked)).length > 0);
      await adding.query('COMMIT');
      assert.equal((await step).removed, 0);
    } finally {
      await adding.end();
    }
    const left = await server.sql(
      'SELECT target FROM jobs JOIN deliveries ON deliveries.seq = delivery',
      url,
    );
    assert.deepEqual(left.flat().toSorted(), ['done', 'endpoint:t/e']);
  });

  test('a vacuum follows once a fiftieth of a table was removed', async () => {
    const url = await server.createDatabase();
    await (await openDatabase(url))[Symbol.asyncDispose]();
    const tables = await server.sql(
      `SELECT relname FROM pg_class WHERE 'autovacuum_vacuum_scale_factor=0.02' = ANY (reloptions) ORDER BY 1`,
      url,
    );
    assert.deepEqual(tables.flat(), [
      'attempts',
      'audit_events',
      'deliveries',
      'enqueued',
      'jobs',
      'remembered_keys',
    ]);
  });
});
