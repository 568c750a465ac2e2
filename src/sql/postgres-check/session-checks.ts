import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Connection, sqlState } from '../postgres-pool/connection.ts';
import { type Check, expectSeen } from './bench.ts';

/** Interval of polls, in milliseconds. */
const PAUSE = 20;
const LOCK_NOT_AVAILABLE = '55P03';

const command = (connection: Connection, text: string) => connection.run({ text }, undefined);
/** The first column of the rows of a query. */
const column = async (connection: Connection, text: string) =>
  (await connection.run({ text }, [])).map(([value]) => value);
const first = async (connection: Connection, text: string) => (await column(connection, text))[0];

/** Resolves to whether a condition holds within a time in milliseconds. */
async function holdsWithin(time: number, condition: () => Promise<boolean> | boolean): Promise<boolean> {
  for (const deadline = performance.now() + time; performance.now() < deadline; await delay(PAUSE))
    if (await condition()) return true;
  return false;
}

/** What Portico needs of two sessions that work on the same rows. */
export const SESSION_CHECKS: readonly Check[] = [
  {
    name: 'row-locks',
    promise: 'Row locks keep two sessions apart, and SKIP LOCKED leaves out what another one holds',
    needs: ['schema'],
    meaning:
      'Two processes could claim the same delivery: its handler would run twice. Do not run Portico here.',
    async run(bench) {
      const [one, two] = [await bench.connect(), await bench.connect()];
      await command(one, 'CREATE TABLE locked (id INT PRIMARY KEY); INSERT INTO locked VALUES (1), (2)');
      await command(one, 'BEGIN');
      await command(one, 'SELECT id FROM locked WHERE id = 1 FOR UPDATE');
      const free = await column(two, 'SELECT id FROM locked ORDER BY id FOR UPDATE SKIP LOCKED');
      expectSeen(
        free.join() === '2',
        `SKIP LOCKED gave rows ${free.join(', ')} of 1, which is locked, and 2`,
      );
      const waited = two.run({ text: 'SELECT id FROM locked WHERE id = 1 FOR UPDATE' }, []);
      const state = await waited.then(() => 'none', sqlState);
      const remedy = 'A write would wait for another one without end: lock_timeout must end the wait.';
      expectSeen(state === LOCK_NOT_AVAILABLE, `a second lock of row 1 ended with SQLSTATE ${state}`, remedy);
      await command(one, 'COMMIT');
      const after = await column(two, 'SELECT id FROM locked ORDER BY id FOR UPDATE SKIP LOCKED');
      expectSeen(
        after.join() === '1,2',
        `after the commit, SKIP LOCKED gave rows ${after.join(', ')} of 1 and 2`,
      );
      return 'a locked row was left out, a wait for it ended after lock_timeout, a commit released it';
    },
  },
  {
    name: 'read-committed',
    promise: 'A statement that has waited for a lock sees the committed row',
    needs: ['schema'],
    meaning:
      'Claims and settlements could act on rows that are out of date, or fail under load. Turn read committed isolation on (YugabyteDB: yb_enable_read_committed_isolation).',
    async run(bench) {
      const [one, two] = [await bench.connect(), await bench.connect()];
      await command(
        one,
        `CREATE TABLE claimed (id INT PRIMARY KEY, owner TEXT, n INT NOT NULL); INSERT INTO claimed VALUES (1, NULL, 0)`,
      );
      await command(two, `SET lock_timeout = '10s'; SET statement_timeout = '15s'`);
      await command(one, 'BEGIN');
      await command(one, `UPDATE claimed SET owner = 'one', n = n + 1 WHERE id = 1 AND owner IS NULL`);
      const claims = column(
        two,
        `UPDATE claimed SET owner = 'two' WHERE id = 1 AND owner IS NULL RETURNING id`,
      );
      const counts = column(two, 'UPDATE claimed SET n = n + 1 WHERE id = 1 RETURNING n');
      const ended = Promise.allSettled([claims, counts]);
      await delay(5 * PAUSE);
      await command(one, 'COMMIT');
      await ended;
      const claimed = await claims;
      expectSeen(claimed.length === 0, 'a second session claimed a row that the first one had claimed');
      const [n] = await counts;
      expectSeen(n === 2, `two increments of 0 gave ${n}`);
      return 'a second claim of a row found it claimed, and two increments gave 2';
    },
  },
  {
    name: 'advisory-locks',
    promise: 'Advisory locks exclude other sessions, and end with the transaction or the session',
    needs: ['session', 'primary'],
    meaning:
      'Two processes could migrate the database, or revive a request with an Idempotency-Key, at the same time.',
    async run(bench) {
      const [one, two, three] = [await bench.connect(), await bench.connect(), await bench.connect()];
      const key = randomInt(2 ** 47);
      const taken = (connection: Connection, scope = '') =>
        first(connection, `SELECT pg_try_advisory${scope}_lock(${key})`);
      expectSeen((await taken(one)) === true, 'a free lock was refused');
      expectSeen((await taken(two)) === false, 'two sessions got the same lock');
      await column(one, `SELECT pg_advisory_unlock(${key})`);
      await command(two, 'BEGIN');
      expectSeen((await taken(two, '_xact')) === true, 'a lock was refused after it was released');
      expectSeen((await taken(one, '_xact')) === false, 'two transactions got the same lock');
      await command(two, 'COMMIT');
      expectSeen((await taken(one)) === true, 'a lock outlived its transaction');
      await column(two, `SELECT pg_advisory_lock_shared(${randomInt(2 ** 31)}, 1)`);
      one.abort('The session ends');
      expectSeen(
        await holdsWithin(bench.soon, async () => (await taken(three)) === true),
        'a lock outlived its session',
      );
      return 'each lock had one holder at a time, until its transaction or session ended';
    },
  },
  {
    name: 'notifications',
    promise: 'Notifications of one session reach another one at its commit',
    needs: ['session', 'primary'],
    meaning:
      'Nothing is lost, but changes and deliveries of other processes are seen by polls only, up to some seconds late.',
    async run(bench) {
      const [listener, sender] = [await bench.connect(), await bench.connect()];
      const channel = bench.schema;
      let count = 0;
      listener.onNotification = (name) => {
        if (name === channel) count++;
      };
      await command(listener, `LISTEN ${channel}`);
      const began = performance.now();
      await command(sender, `NOTIFY ${channel}`);
      expectSeen(
        await holdsWithin(bench.soon, () => count === 1),
        `NOTIFY did not arrive within ${bench.soon / 1_000} s`,
      );
      const took = performance.now() - began;
      await command(sender, 'BEGIN');
      await column(sender, `SELECT pg_notify('${channel}', '')`);
      await column(listener, 'SELECT 1');
      expectSeen(count === 1, 'a notification arrived before its commit');
      await command(sender, 'COMMIT');
      expectSeen(
        await holdsWithin(bench.soon, () => count === 2),
        `pg_notify did not arrive within ${bench.soon / 1_000} s`,
      );
      return `the first arrived after ${Math.ceil(took)} ms`;
    },
  },
  {
    name: 'triggers',
    promise: 'Triggers see the changed rows of a statement, and columns are generated',
    needs: ['schema'],
    meaning: 'Changes would not be recorded: the tables of users and relations cannot be made without them.',
    async run(bench) {
      const connection = await bench.connect();
      await command(
        connection,
        `CREATE TABLE watched (
          id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL,
          folded TEXT GENERATED ALWAYS AS (lower(name COLLATE "C")) STORED);
        CREATE TABLE watched_log (seq BIGINT GENERATED ALWAYS AS IDENTITY, what TEXT NOT NULL);
        CREATE FUNCTION log_watched() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          INSERT INTO watched_log (what) SELECT TG_OP || ' ' || folded FROM changed ORDER BY id;
          RETURN NULL;
        END $$;
        CREATE TRIGGER inserted AFTER INSERT ON watched REFERENCING NEW TABLE AS changed
          FOR EACH STATEMENT EXECUTE FUNCTION log_watched();
        CREATE TRIGGER deleted AFTER DELETE ON watched REFERENCING OLD TABLE AS changed
          FOR EACH STATEMENT EXECUTE FUNCTION log_watched();`,
      );
      await command(connection, `INSERT INTO watched (name) VALUES ('A'), ('B')`);
      await command(connection, 'DELETE FROM watched WHERE id = 1');
      const found = await column(connection, 'SELECT what FROM watched_log ORDER BY seq');
      expectSeen(found.join() === 'INSERT a,INSERT b,DELETE a', `the triggers logged: ${found.join(', ')}`);
      return 'three changes of two statements were logged in order';
    },
  },
  {
    name: 'row-versions',
    promise: 'Each change of a row gives it another xmin',
    needs: ['schema'],
    meaning:
      'The ETag of rows in tables of another program would not change with them. Other tables do not need xmin.',
    async run(bench) {
      const connection = await bench.connect();
      await command(connection, 'CREATE TABLE versioned (n INT NOT NULL); INSERT INTO versioned VALUES (1)');
      const version = () => first(connection, 'SELECT xmin::text::bigint FROM versioned');
      const before = await version();
      await command(connection, 'UPDATE versioned SET n = 2');
      expectSeen((await version()) !== before, `xmin stayed ${before}`);
      return 'xmin changed with the row';
    },
  },
  {
    name: 'lost-connection',
    promise: 'A connection lost in a transaction leaves nothing behind',
    needs: ['schema'],
    meaning:
      'A write that failed could be stored after all, or hold its locks and block others. Do not run Portico here.',
    async run(bench) {
      const [lost, other] = [await bench.connect(), await bench.connect()];
      await command(other, 'CREATE TABLE kept (id INT PRIMARY KEY, by TEXT NOT NULL)');
      await command(lost, 'BEGIN');
      await command(lost, `INSERT INTO kept VALUES (1, 'lost')`);
      const pid = await first(lost, 'SELECT pg_backend_pid()');
      const ended = await first(other, `SELECT pg_terminate_backend(${Number(pid)})`).catch(() => false);
      if (ended !== true) lost.abort('The session ends');
      const stored = () =>
        column(other, `INSERT INTO kept VALUES (1, 'other') RETURNING id`).then(
          () => true,
          (error: unknown) => {
            if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
            return false;
          },
        );
      expectSeen(await holdsWithin(bench.soon, stored), `its lock was held for ${bench.soon / 1_000} s`);
      const next = await bench.connect();
      await command(next, `INSERT INTO kept VALUES (2, 'next')`);
      const rows = await column(next, 'SELECT by FROM kept ORDER BY id');
      expectSeen(rows.join() === 'other,next', `the table has rows of: ${rows.join(', ')}`);
      const how = ended === true ? 'the server ended the session' : 'the client left';
      return `${how}: nothing was stored, its lock was free, the next write worked`;
    },
  },
];
