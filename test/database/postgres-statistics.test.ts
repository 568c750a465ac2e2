import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import pg from 'pg';
import { Connection, type Statement } from '../../src/sql/postgres-pool/connection.ts';
import { withoutPostgres } from '../support/databases.ts';
import { type Binaries, dumpableServer, startPostgres } from '../support/postgres.ts';
import { startTestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

const MODULE = `
  export default {
    relations: {
      authors: { columns: { name: { type: 'text', max: 80 }, born: { type: 'date', nullable: true } }, indexes: [['name']] },
      books: {
        columns: {
          title: { type: 'text', max: 200 },
          price: { type: 'decimal', precision: 10, scale: 2, nullable: true },
          author: { type: 'reference', to: 'authors', onDelete: 'cascade' },
        },
        unique: [['author_id', 'title']],
      },
    },
    webhook: {
      handlers: {
        // The first attempt fails, so that a delivery waits and has a second attempt.
        ordered: {
          order: '/data/key',
          attempts: 3,
          handler: async ({ data, attempt }) => {
            if (data.fails || attempt === 1) throw new Error('no');
          },
        },
      },
    },
  };`;

interface Node {
  readonly 'Node Type': string;
  readonly 'Index Name'?: string;
  readonly 'Index Cond'?: string;
  readonly 'Relation Name'?: string;
  readonly Plans?: readonly Node[];
}

/** How a plan reaches tables: by which index and which of its columns, or by all of their rows. */
function accesses(node: Node): readonly string[] {
  const own = node['Relation Name'] === undefined && node['Index Name'] === undefined ? [] : [accessOf(node)];
  return [...own, ...(node.Plans ?? []).flatMap(accesses)];
}

function accessOf({
  'Index Name': index,
  'Index Cond': condition = '',
  'Relation Name': table,
  ...node
}: Node) {
  if (index === undefined) return node['Node Type'] === 'Seq Scan' ? `all of ${table}` : '';
  return `${index} by ${[...new Set(condition.match(/\b[a-z_]+(?= (?:=|<|>|<=|>=|<>|<@|@>|~)(?: |$))/g))].join()}`;
}

/** Runs what users do on a service, and gives the named statements that it has sent. */
async function statementsOf(url: string): Promise<readonly Statement[]> {
  const found = new Map<string, Statement>();
  const { run } = Connection.prototype;
  Connection.prototype.run = function (statement, values) {
    if (statement.name !== undefined) found.set(statement.name, statement);
    return run.call(this, statement, values);
  };
  try {
    await using service = await startTestService({
      module: MODULE,
      env: {
        DATABASE_URL: url,
        WEBHOOK_BACKOFF: '1',
        WEBHOOK_MAX_BACKOFF: '2',
        MANAGEMENT_INCLUDE: 'deliveries',
        MANAGEMENT_ENDPOINT_ACCESS: 'deliveries=unrestricted',
      },
      listens: true,
    });
    const { rest, webhook, management } = service.urls;
    const send = async (method: string, target: string, body?: unknown, headers = {}) => {
      const reply = await fetch(target, {
        method,
        body: body === undefined ? null : JSON.stringify(body),
        headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      });
      const text = await reply.text();
      assert.ok(reply.status < 300, `${method} ${target} ${reply.status} ${text}`);
      return text;
    };
    const user = { name: 'a', email: 'a@b' };
    for (let n = 0; n < 3; n++) await send('POST', `${rest}/users`, user);
    await send('POST', `${rest}/users`, user, { 'idempotency-key': 'k' });
    await send('GET', `${rest}/users/1`);
    await send('GET', `${rest}/users?limit=2&name:prefix=a&sort=-name`);
    await send('PUT', `${rest}/user?id=1`, user).catch(() => undefined);
    await send('POST', `${rest}/authors`, { name: 'x' });
    await send('POST', `${rest}/books`, { title: 't', author_id: 1 });
    await send('PATCH', `${rest}/books/1`, { price: '1.00' });
    await send('GET', `${rest}/books/1`);
    await send('GET', `${rest}/books?limit=1&author_id=1&sort=-title&fields=title,author(name)`);
    await send('GET', `${rest}/authors?fields=name,books(title)`);
    await send('GET', `${rest}/books?author.name:prefix=x`, undefined, { prefer: 'count=exact' });
    await send('POST', `${rest}/authors`, { name: 'y' }, { 'idempotency-key': 'k' });
    await send('DELETE', `${rest}/books/1`);
    for (let n = 0; n < 6; n++)
      await send('POST', `${webhook}/webhook`, {
        event: 'ordered',
        data: { key: `k${n % 2}`, fails: n > 3 },
      });
    const deliveries = `${management}/actuator/deliveries`;
    await waitFor('the deliveries to end', async () => {
      const ended = await Promise.all(
        ['done', 'dead'].map((status) => send('GET', `${deliveries}?status=${status}`)),
      );
      return ended.flatMap((text) => JSON.parse(text).items).length === 6;
    });
    const dead = JSON.parse(await send('GET', `${deliveries}?status=dead`)).items;
    await send('GET', `${deliveries}/${dead[0].id}`);
    await send('POST', `${deliveries}/${dead[0].id}`, { action: 'replay' });
  } finally {
    Connection.prototype.run = run;
  }
  return [...found.values()];
}

const ROWS = 3_000;
/** Rows of all hot tables: deliveries with a job each, users, and books. */
const fill = (status: 'open' | 'done') => `
  WITH d AS (
    INSERT INTO deliveries (id, source, event, data_pointer, body, received_at)
    SELECT gen_random_uuid()::text, 's', 'e', '', '{}'::bytea, 1 FROM generate_series(1, ${ROWS}) RETURNING seq)
  INSERT INTO jobs (delivery, target, status, due_at, order_key, finished_at)
  SELECT seq, 't', '${status}', seq, CASE WHEN seq % 3 = 0 THEN 'k' || seq % 100 END, ${status === 'open' ? 'NULL' : '5'} FROM d;
  INSERT INTO users (name, email) SELECT 'n' || n, 'e' || n || '@x' FROM generate_series(1, ${ROWS}) AS n;
  INSERT INTO idempotency_keys (key, fingerprint, user_id, version, expires_at)
  SELECT gen_random_uuid()::text, '', 1, 1, 1 FROM generate_series(1, ${ROWS});
  INSERT INTO authors (name) SELECT 'a' || n FROM generate_series(1, ${ROWS}) AS n;
  INSERT INTO books (title, author_id) SELECT gen_random_uuid()::text, 1 + n % 100 FROM generate_series(1, ${ROWS}) AS n;
  INSERT INTO attempts (job, attempt, outcome, started_at, process)
  SELECT n, 1, 'retry', 1, 'p' FROM generate_series(1, ${ROWS}) AS n;`;

/** Empties the hot tables, has the server look at them, and fills them again. */
const EMPTY = `TRUNCATE deliveries, jobs, attempts; ANALYZE deliveries, jobs, attempts; ${fill('open')} DISCARD PLANS`;
/** The statistics under which a plan must be the same, and what makes them. */
const STATISTICS = {
  'of no table, with a plan made then': '',
  'of no table': `${fill('done')} DISCARD PLANS`,
  'of a quiet time': 'ANALYZE',
  'of a quiet time, with a backlog': `${fill('open')} DISCARD PLANS`,
  'of a backlog': 'ANALYZE',
  'of empty tables': EMPTY,
};

const servers: Readonly<Record<string, Binaries | undefined>> = {
  'npm ci': undefined,
  Debian: dumpableServer(),
};

for (const [from, binaries] of Object.entries(servers)) {
  const skip =
    withoutPostgres ?? (from === 'Debian' && binaries === undefined ? 'needs the package postgresql' : false);
  describe(`the PostgreSQL of ${from}`, { skip }, () => {
    test('reaches rows by the same indexes whatever its statistics say', async () => {
      await using postgres = await startPostgres({
        ...(binaries && { binaries }),
        settings: { autovacuum: 'off' },
      });
      const url = await postgres.createDatabase();
      const statements = await statementsOf(url);
      const names = statements.map(({ name }) => name);
      for (const name of ['claim', 'prune-ended']) assert.ok(names.includes(name), names.join());
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      try {
        await client.query(
          'SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; SET jit = off',
        );
        const known = new Map<string, string>();
        const different: string[] = [];
        for (const [nth, { text }] of statements.entries()) await client.query(`PREPARE s${nth} AS ${text}`);
        for (const [statistics, sql] of Object.entries(STATISTICS)) {
          await client.query(sql);
          for (const [nth, { name = '', text }] of statements.entries()) {
            const count = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, n]) => Number(n)));
            const given = count === 0 ? '' : `(${Array(count).fill('NULL').join()})`;
            const { rows } = await client.query(`EXPLAIN (FORMAT JSON) EXECUTE s${nth}${given}`);
            const [{ Plan: plan }] = rows[0]['QUERY PLAN'] as readonly [{ readonly Plan: Node }];
            const found = [...new Set(accesses(plan))]
              .filter((each) => each !== '')
              .toSorted()
              .join('; ');
            const before = known.get(name) ?? found;
            known.set(name, before);
            if (found !== before)
              different.push(
                `${name} with statistics ${statistics}:\n  ${found}\ninstead of\n  ${before}\n${text}`,
              );
          }
        }
        assert.deepEqual(different, [], different.join('\n\n'));
      } finally {
        await client.end();
      }
    });
  });
}
