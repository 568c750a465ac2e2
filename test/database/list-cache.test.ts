import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import fc from 'fast-check';
import pg from 'pg';
import { type UserFormat, userPages } from '../../src/relations/lists.ts';
import type { DatabaseUserStore } from '../../src/relations/user-stores.ts';
import type { DatabaseObserver } from '../../src/sql/batch-queue.ts';
import type { Database } from '../../src/sql/database.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { newDelivery } from '../support/new-delivery.ts';
import { rounds } from '../support/proof-settings.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const LAST = Number.MAX_SAFE_INTEGER;
const USER = { name: 'Ada', email: 'ada@example.com' };
const ANY = { versions: undefined, before: undefined };

/** Counts the pages that are read. */
function observer() {
  const tallies = new Map<string, { count: number; timed(): void }>();
  const made: DatabaseObserver = {
    reads(operation) {
      const tally = { count: 0, timed() {} };
      tallies.set(operation, tally);
      return tally;
    },
    sent: () => () => {},
    batch() {},
  };
  return { made, pages: () => tallies.get('user.page')?.count ?? 0 };
}

/** A database, the same one opened another time, and SQL in a process of its own or a connection of its own. */
interface Opened extends AsyncDisposable {
  readonly ours: Database;
  readonly theirs: Database;
  /** How many pages `ours` has read. */
  pages(): number;
  byHand(sql: string): Promise<void>;
}

async function openSqlite(): Promise<Opened> {
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await temporaryFolder());
  const file = join(folder.path, 'users.db');
  const { made, pages } = observer();
  const ours = cleanup.use(openDatabase(`sqlite:${file}`, { observer: made }));
  const theirs = cleanup.use(openDatabase(`sqlite:${file}`));
  const script = `
    const { DatabaseSync } = require('node:sqlite');
    new DatabaseSync(process.argv[1], { timeout: 5000 }).exec(process.argv[2]);`;
  const all = cleanup.move();
  return {
    ours,
    theirs,
    pages,
    async byHand(sql) {
      await promisify(execFile)(process.execPath, ['-e', script, file, sql]);
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

async function openPostgres(): Promise<Opened> {
  await using cleanup = new AsyncDisposableStack();
  const url = await postgresUrl();
  const { made, pages } = observer();
  const ours = cleanup.use(await openDatabase(url, { observer: made }));
  const theirs = cleanup.use(await openDatabase(url));
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  cleanup.defer(() => client.end());
  const all = cleanup.move();
  return {
    ours,
    theirs,
    pages,
    async byHand(sql) {
      await client.query(sql);
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

async function textOf(users: DatabaseUserStore, format: UserFormat = 'json'): Promise<string> {
  let text = '';
  const upTo = await users.lastId();
  for await (const { bytes } of userPages(users, format, { after: 0, upTo })) text += bytes;
  return text;
}

const engines = {
  sqlite: { open: openSqlite, skip: false },
  postgres: { open: openPostgres, skip: withoutPostgres ?? false },
} as const;

for (const [engine, { open, skip }] of Object.entries(engines)) {
  describe(`the cache of lists on ${engine}`, { skip }, () => {
    test('a list that nobody has changed is read once, in each format', async () => {
      await using opened = await open();
      const { users } = opened.ours;
      await users.importUsers(Array.from({ length: 3_000 }, (_, i) => ({ ...USER, name: `user ${i}` })));
      for (const format of ['json', 'ndjson', 'csv'] as const) {
        const first = await textOf(users, format);
        const read = opened.pages();
        assert.ok(read > 1);
        for (let i = 0; i < 3; i++) assert.equal(await textOf(users, format), first);
        assert.equal(opened.pages(), read);
      }
    });

    test('whoever changes a user, in whichever process, the next list shows it', async () => {
      await using opened = await open();
      const { ours, theirs, byHand } = opened;
      const id = await ours.users.create(USER);
      const gone = await ours.users.create(USER);
      const key = { key: 'k', fingerprint: 'f', keptFor: 60_000 };
      const changes: Readonly<Record<string, () => Promise<unknown>>> = {
        create: () => ours.users.create(USER),
        'create once': () => ours.users.createOnce({ ...USER, name: 'once' }, key),
        import: () => ours.users.importUsers([USER, USER]),
        update: () => ours.users.update(id, { ...USER, name: 'updated' }),
        change: () => ours.users.change(id, { name: 'changed', condition: ANY }),
        remove: () => ours.users.remove(gone),
        'create elsewhere': () => theirs.users.create(USER),
        'update elsewhere': () => theirs.users.update(id, { ...USER, name: 'updated elsewhere' }),
        'remove elsewhere': () => theirs.users.remove(gone + 1),
        'insert by hand': () => byHand(`INSERT INTO users (name, email) VALUES ('by hand', 'x@y')`),
        'update by hand': () => byHand(`UPDATE users SET name = 'updated by hand' WHERE id = ${id}`),
        'delete by hand': () => byHand(`DELETE FROM users WHERE id = ${gone + 2}`),
        'a user in the place of one that is gone, by hand': () =>
          engine === 'sqlite'
            ? byHand(`INSERT INTO users (id, name, email) VALUES (${gone}, 'back', 'x@y')`)
            : byHand(
                `INSERT INTO users (id, name, email) OVERRIDING SYSTEM VALUE VALUES (${gone}, 'back', 'x@y')`,
              ),
      };
      for (const [name, change] of Object.entries(changes)) {
        const before = await textOf(ours.users);
        assert.equal(await textOf(ours.users), before);
        await change();
        assert.notEqual(await textOf(ours.users), before, name);
        assert.equal(await textOf(ours.users), await textOf(theirs.users), name);
      }
    });

    test('many that ask at once, while others write, see what was stored before they asked', async () => {
      await using opened = await open();
      const { ours, theirs } = opened;
      let stored = 0;
      let asking = true;
      const write = async (users: DatabaseUserStore) => {
        for (let i = 0; i < 60; i++) stored = Math.max(stored, await users.create(USER));
      };
      const ask = async () => {
        while (asking) {
          const least = stored;
          const { lastId } = await ours.users.page('json', 0, LAST);
          assert.ok(lastId >= least, `user ${least} is missing: the last one is ${lastId}`);
          await new Promise(setImmediate);
        }
      };
      const asked = Array.from({ length: 8 }, ask);
      await Promise.all([write(ours.users), write(theirs.users)]);
      asking = false;
      await Promise.all(asked);
    });

    test('after any history of two processes both list what is there', async () => {
      await using opened = await open();
      const stores = [opened.ours, opened.theirs];
      const step = fc.record({
        kind: fc.constantFrom('create', 'update', 'remove', 'deliver', 'list'),
        store: fc.nat(1),
        pick: fc.nat(),
      });
      const model = new Map<number, string>();
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
          for (const { kind, store, pick } of steps) {
            const database = stores[store] ?? opened.ours;
            const name = `user ${pick}`;
            const id = [...model.keys()][pick % Math.max(1, model.size)] ?? 0;
            if (kind === 'create') model.set(await database.users.create({ ...USER, name }), name);
            else if (kind === 'deliver') await database.inbox.append(newDelivery());
            else if (kind === 'remove') assert.equal(await database.users.remove(id), model.delete(id));
            else if (kind === 'update' && (await database.users.update(id, { ...USER, name })))
              model.set(id, name);
            for (const each of stores) {
              const listed = JSON.parse(`[${(await textOf(each.users)).slice(1)}]`) as (typeof USER)[];
              assert.deepEqual(
                listed.map((user) => user.name),
                [...model].sort(([a], [b]) => a - b).map(([, written]) => written),
              );
            }
          }
        }),
        { numRuns: rounds(15) },
      );
    });
  });
}
