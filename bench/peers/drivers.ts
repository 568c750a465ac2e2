import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import pg from 'pg';
import postgres from 'postgres';

// Reads a job from standard input and writes operations per second by driver and round.
interface Job {
  readonly url: string;
  readonly seconds: number;
  readonly rounds: number;
}

interface Driver {
  read(id: number): Promise<unknown>;
  insert(names: readonly string[], emails: readonly string[]): Promise<unknown>;
  end(): Promise<unknown>;
}

const USERS = 1_000;
const CONNECTIONS = 10;
const SELECT = 'SELECT id, name, email FROM users WHERE id = $1';
const INSERT = 'INSERT INTO users (name, email) SELECT * FROM unnest($1::text[], $2::text[])';

/** Sends one statement at a time on each connection, as its pool does. */
function pgDriver(url: string): Driver {
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS });
  return {
    read: async (id) => (await pool.query({ name: 'read', text: SELECT, values: [id] })).rows[0],
    insert: (...values) => pool.query({ name: 'insert', text: INSERT, values }),
    end: () => pool.end(),
  };
}

/** Sends statements round robin on connections that do not wait for the previous answer. */
async function pipelinedDriver(url: string): Promise<Driver> {
  const config = { connectionString: url, pipeline: true } as pg.ClientConfig;
  const clients = Array.from({ length: CONNECTIONS }, () => new pg.Client(config));
  await Promise.all(clients.map((client) => client.connect()));
  let turn = 0;
  const query = (name: string, sql: string, values: unknown[]) => {
    const client = clients[turn++ % CONNECTIONS];
    assert.ok(client);
    return client.query({ name, text: sql, values });
  };
  return {
    read: async (id) => (await query('read', SELECT, [id])).rows[0],
    insert: (...values) => query('insert', INSERT, values),
    end: () => Promise.all(clients.map((client) => client.end())),
  };
}

function postgresDriver(url: string): Driver {
  const sql = postgres(url, { max: CONNECTIONS });
  return {
    read: async (id) => (await sql`SELECT id, name, email FROM users WHERE id = ${id}`)[0],
    insert: (names, emails) =>
      sql`INSERT INTO users (name, email) SELECT * FROM unnest(${names as string[]}::text[], ${emails as string[]}::text[])`,
    end: () => sql.end(),
  };
}

/** Operations per second with `underWay` of them in progress. */
async function rate(operation: () => Promise<unknown>, underWay: number, seconds: number): Promise<number> {
  const begin = performance.now();
  const end = begin + seconds * 1_000;
  let count = 0;
  const worker = async () => {
    while (performance.now() < end) {
      await operation();
      count++;
    }
  };
  await Promise.all(Array.from({ length: underWay }, worker));
  return (count / (performance.now() - begin)) * 1_000;
}

const { url, seconds, rounds } = JSON.parse(await text(process.stdin)) as Job;
const setup = new pg.Client(url);
await setup.connect();
await setup.query(`CREATE TABLE users (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL)`);
await setup.query(
  `INSERT INTO users (name, email) SELECT 'User ' || i, 'u@example.com' FROM generate_series(1, ${USERS}) i`,
);
await setup.end();

const drivers = {
  pg: pgDriver(url),
  'pg, pipelined': await pipelinedDriver(url),
  postgres: postgresDriver(url),
};
const names = Array.from({ length: 100 }, (_, i) => `Grace Hopper ${i}`);
const emails = names.map((_, i) => `grace${i}@example.com`);
let id = 0;
const read = (driver: Driver) => () => driver.read((id++ % USERS) + 1);
const insert = (driver: Driver) => () => driver.insert(names, emails);

for (const driver of Object.values(drivers)) {
  assert.equal(((await driver.read(1)) as { name: string }).name, 'User 1');
  await rate(read(driver), 64, 1);
  await rate(insert(driver), 4, 0.5);
}
const empty = (): Record<string, number[]> =>
  Object.fromEntries(Object.keys(drivers).map((name) => [name, []]));
const results = { reads: empty(), inserts: empty() };
for (let round = 0; round < rounds; round++) {
  for (const [name, driver] of Object.entries(drivers)) {
    results.reads[name]?.push(await rate(read(driver), 64, seconds));
    results.inserts[name]?.push((await rate(insert(driver), 4, seconds)) * names.length);
  }
}
for (const driver of Object.values(drivers)) await driver.end();
process.stdout.write(JSON.stringify(results));
