import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import pg from 'pg';
import type { SearchLevel } from '../../src/relations/user.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { startPortico } from '../support/portico-process.ts';
import { inFull, proofCount } from '../support/proof-settings.ts';
import { seededRandom } from '../support/random.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { watchedTurns } from '../support/turns.ts';
import { changedList, KNOWN, type ListRequest, randomList, TEXTS } from './support/random-list.ts';

/** Requests that are tried: half of them at random, the others bred from the worst so far. */
const REQUESTS = proofCount('PORTICO_WORST_LISTS', 40, 8);
const SEED = Number(process.env.PORTICO_WORST_SEED ?? Math.floor(Math.random() * 2 ** 31));
/** How much processor time any list may take of the event loop in one turn, in milliseconds. */
const MAX_TURN = 50;

/** As many users as are looked at one by one, or more where they are indexed; a part of each kind of text. */
const USERS: Readonly<Record<SearchLevel, number>> = { none: 10_000, keys: 12_000, text: 12_000 };
const DELIVERIES = 6_000;
/** Deliveries with large bodies and the longest event names that their senders could think of. */
const LARGE_DELIVERIES = 60;
const LARGE = 400_000;

/** The statements that fill a database; `repeat` is that of the engine. */
function fill(
  users: number,
  repeat: (text: string, count: number) => string,
  blob: (text: string) => string,
) {
  const n = (count: number) =>
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`;
  const [wide, control, plain] = TEXTS.map((text) => repeat(`'${text.slice(0, 1)}'`, text.length));
  const name = `CASE i % 4 WHEN 0 THEN ${wide} WHEN 1 THEN ${control} WHEN 2 THEN ${plain} ELSE 'name' END`;
  const email = `i || '@' || CASE i % 2 WHEN 0 THEN ${repeat("'\u{20ac}'", 300)} ELSE ${repeat("'\u0001'", 300)} END`;
  const delivery = (first: number, count: number, event: string, body: string) => `
    ${n(count)} INSERT INTO deliveries (seq, id, source, event, data_pointer, content_type, body, received_at)
    SELECT ${first} + i, 'delivery-' || (${first} + i), '', ${event}, '/data', 'application/json', ${blob(body)}, 1700000000000 + i FROM n`;
  return {
    users: `${n(users)} INSERT INTO users (name, email) SELECT ${name}, ${email} FROM n`,
    deliveries: [
      delivery(0, DELIVERIES, "'filled'", `'{"event":"filled","data":{"number":' || i || '}}'`),
      delivery(DELIVERIES, LARGE_DELIVERIES, repeat("'x'", LARGE), `'"' || ${repeat("'y'", LARGE)} || '"'`),
    ],
    jobs: `${n(DELIVERIES)} INSERT INTO jobs (delivery, target, status, attempts, due_at, finished_at)
      SELECT i, 'handler:filled', CASE i % 100 WHEN 0 THEN 'dead' ELSE 'done' END, 1, 1700000000000 + i, 1700000000050 + i FROM n`,
  };
}

async function fillSqlite(file: string, search: SearchLevel): Promise<string> {
  const url = `sqlite:${file}`;
  await (await openDatabase(url))[Symbol.asyncDispose]();
  {
    using db = new DatabaseSync(file, { timeout: 20_000 });
    db.exec('PRAGMA synchronous = off');
    const repeat = (text: string, count: number) => `replace(printf('%.*c', ${count}, '-'), '-', ${text})`;
    const { users, deliveries, jobs } = fill(USERS[search], repeat, (text) => `CAST(${text} AS blob)`);
    for (const sql of [users, ...deliveries, jobs]) db.exec(sql);
    db.exec(
      'INSERT INTO delivery_zones SELECT max(seq), min(seq), min(id), max(id) FROM deliveries GROUP BY seq / 512',
    );
  }
  await (await openDatabase(url, { userIndexes: { search } }))[Symbol.asyncDispose]();
  return url;
}

async function fillPostgres(search: SearchLevel): Promise<string> {
  const url = await postgresUrl();
  await (await openDatabase(url, { userIndexes: { search } }))[Symbol.asyncDispose]();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const repeat = (text: string, count: number) => `repeat(${text}, ${count})`;
    const { users, deliveries, jobs } = fill(USERS[search], repeat, (text) => `convert_to(${text}, 'UTF8')`);
    for (const sql of [users, ...deliveries, jobs]) {
      await client.query(
        sql.replace('(seq, id,', '(id,').replace(/SELECT \d+ \+ i, 'delivery/, "SELECT 'delivery"),
      );
    }
    await client.query('ANALYZE');
  } finally {
    await client.end();
  }
  return url;
}

interface Tried {
  readonly request: ListRequest;
  readonly turn: number;
  readonly status: number;
}

const told = ({ request: { path, parameters, headers }, turn, status }: Tried) =>
  `${turn.toFixed(1)} ms (${status}): ${path} ${JSON.stringify([parameters, headers]).slice(0, 400)}`;

async function search(database: string, level: SearchLevel, tell: (text: string) => void): Promise<void> {
  await using folder = await temporaryFolder();
  const turns = watchedTurns(folder.path);
  await using portico = startPortico({
    cwd: folder.path,
    nodeArgs: turns.nodeArgs,
    env: {
      ...turns.env,
      DATABASE_URL: database,
      INTERFACES: 'graphql,rest,management',
      GRAPHQL_USERS: 'database',
      MANAGEMENT_INCLUDE: '*',
      REST_SEARCH: level,
      WEBHOOK_RETENTION: '0',
    },
  });
  await portico.ready();
  const random = seededRandom(SEED);
  const tried: Tried[] = [];
  const began = performance.now();
  const attempt = async (request: ListRequest) => {
    const { door, path, parameters, headers } = request;
    const query = new URLSearchParams(parameters.map(([name, value]) => [name, value]));
    await turns.longest();
    // A kept connection may be closed just when a request is sent, if this process stands still for seconds.
    const reply = await fetch(`${portico.urls[door]}${path}?${query}`, {
      headers: { ...headers, connection: 'close' },
    });
    await reply.arrayBuffer();
    tried.push({ request, turn: await turns.longest(), status: reply.status });
    return reply.headers.get('link');
  };
  // Until the code is compiled and the heap has its size.
  for (const request of KNOWN) await attempt(request);
  tried.length = 0;
  for (const request of KNOWN) await attempt(request);
  for (let i = 0; i < REQUESTS; i++) {
    if (i < REQUESTS / 2) await attempt(randomList(random));
    else {
      const worst = tried.toSorted((a, b) => b.turn - a.turn).slice(0, 8);
      await attempt(changedList(random.pick(worst).request, random));
    }
  }
  const worst = tried.toSorted((a, b) => b.turn - a.turn);
  for (const each of worst.slice(0, 3)) tell(told(each));
  tell(`${((performance.now() - began) / 1e3).toFixed(0)} s`);
  const [first] = worst;
  assert.ok(first);
  assert.ok(first.turn < MAX_TURN, told(first));
  assert.ok(tried.filter(({ status }) => status === 200).length > REQUESTS / 3);
  assert.ok(
    tried.every(({ status }) => status === 200 || status === 400 || status === 404),
    'none fails',
  );
}

describe('the worst request for a list holds the event loop for a few milliseconds', () => {
  // On PostgreSQL they are not indexed either.
  for (const level of inFull ? (['none', 'text'] as const) : (['text'] as const)) {
    test(`on SQLite, users indexed for ${level}`, async (t) => {
      t.diagnostic(`PORTICO_WORST_SEED=${SEED}`);
      await using folder = await temporaryFolder();
      const url = await fillSqlite(join(folder.path, 'portico.db'), level);
      await search(url, level, (text) => t.diagnostic(text));
    });
  }

  test('on PostgreSQL', { skip: withoutPostgres ?? false }, async (t) => {
    t.diagnostic(`PORTICO_WORST_SEED=${SEED}`);
    await search(await fillPostgres('none'), 'none', (text) => t.diagnostic(text));
  });
});
