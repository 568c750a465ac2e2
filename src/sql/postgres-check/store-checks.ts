import { readRelations } from '../../config/schema/relations.ts';
import type { EventLog, EventPosition, UserEvent } from '../../relations/events.ts';
import { readRowList } from '../../relations/rows/row-lists.ts';
import type { RowStore } from '../../relations/rows/rows.ts';
import type { Database } from '../database.ts';
import { migrate } from '../postgres/migrate.ts';
import { openPostgres } from '../postgres/open.ts';
import { describeFault } from '../postgres-pool/connection.ts';
import { SHARED_QUERIES } from '../stores/queries.ts';
import { type Bench, type Check, expectSeen, NotSeenError } from './bench.ts';

/** Migrations create some forty tables and indexes, each of which may take a second on a distributed server. */
const MIGRATION_TIMEOUT = 120_000;
const HOUR = 3_600_000;
/** Number of users that are created while a transaction with an earlier change is open. */
const CHANGES = 20;
/** Larger than any page of events here, in characters. */
const SIZE = 1_000_000;

/** Opens Portico's stores in the scratch schema, as a separate process would. */
export function openStores(bench: Bench): Promise<Database> {
  return bench.use(openPostgres(bench.url, { schema: bench.schema, mayMigrate: false }));
}

const BOOKS = {
  authors: {
    columns: { name: { type: 'text', max: 80 }, born: { type: 'date', nullable: true } },
    indexes: [['name']],
  },
  books: {
    columns: {
      title: { type: 'text', max: 200 },
      price: { type: 'decimal', precision: 10, scale: 2, nullable: true },
      about: { type: 'json', nullable: true },
      author: { type: 'reference', to: 'authors', onDelete: 'cascade' },
    },
    computed: { label: { concat: ['title', '!'] } },
    unique: [['author_id', 'title']],
  },
};

/** The migrations, and what Portico does with users and relations. */
export const STORE_CHECKS: readonly Check[] = [
  {
    name: 'migrations',
    promise: 'Two processes that start at once create the tables once',
    needs: ['schema'],
    meaning: 'Portico does not start here. Give the role what the message names, or use another server.',
    timeout: MIGRATION_TIMEOUT,
    async run(bench) {
      const start = async () => migrate(await bench.connect());
      const applied = (await Promise.all([start(), start()])).flat();
      expectSeen(new Set(applied).size === applied.length, `migrations ran twice: ${applied.join(', ')}`);
      expectSeen((await start()).length === 0, 'a third start found migrations to run');
      await bench.use(openPostgres(bench.url, { schema: bench.schema, forService: true }));
      return `ran ${applied.join(', ')}`;
    },
  },
  {
    name: 'statements',
    promise: 'The server can plan every statement that both engines share',
    needs: ['migrations'],
    meaning: 'Requests that need one of these statements fail.',
    async run(bench) {
      const connection = await bench.connect();
      await connection.run({ text: 'SET plan_cache_mode = force_generic_plan' }, undefined);
      const planned = SHARED_QUERIES.map(async ({ name, postgres }, nth) => {
        const count = Math.max(0, ...[...postgres.matchAll(/\$(\d+)/g)].map(([, digits]) => Number(digits)));
        const values = count === 0 ? '' : `(${Array(count).fill('NULL').join()})`;
        const texts = [`PREPARE check_${nth} AS ${postgres}`, `EXPLAIN EXECUTE check_${nth}${values}`];
        const results = await Promise.allSettled(texts.map((text) => connection.run({ text }, undefined)));
        const failed = results.find((each) => each.status === 'rejected');
        return failed === undefined ? [] : [`${name}: ${describeFault(failed.reason)}`];
      });
      const faults = (await Promise.all(planned)).flat();
      expectSeen(faults.length === 0, faults.join('; '));
      return `planned ${SHARED_QUERIES.length} statements`;
    },
  },
  {
    name: 'users',
    promise: 'Users are created, read, listed, changed, imported and removed',
    needs: ['migrations'],
    meaning: 'Requests for users fail or answer wrongly here.',
    async run(bench) {
      const database = await openStores(bench);
      const { users } = database;
      const ada = { name: 'Ada', email: 'ada@example.org' };
      const condition = { versions: undefined, before: undefined };
      const created = await Promise.all(Array.from({ length: 50 }, () => users.create(ada)));
      expectSeen(new Set(created).size === 50, 'two users got the same id');
      const [id = 0, other = 0] = created;
      const key = { key: 'check', fingerprint: 'check', keptFor: HOUR };
      const once = await Promise.all(Array.from({ length: 8 }, () => users.createOnce(ada, key)));
      const ids = new Set(once.flatMap((each) => (each.is === 'created' ? [each.id] : [])));
      expectSeen(ids.size === 1, `one Idempotency-Key, used at once, created ${ids.size} users`);
      expectSeen((await users.read(id))?.json.includes('"Ada"') === true, 'a created user was not found');
      const changed = await users.change(id, { name: 'Ada B', condition });
      expectSeen(changed.is === 'changed', 'a user was not changed');
      expectSeen(await users.update(id, ada), 'a user was not replaced');
      const stale = await users.change(id, {
        name: 'C',
        condition: { versions: [changed.version], before: undefined },
      });
      expectSeen(stale.is === 'refused', 'a change of an old version was not refused');
      const position = await users.beginImport('check');
      const imported = await users.importUsers([ada, ada], {
        key: 'check',
        from: position.line,
        to: 2,
        digest: 'd',
      });
      expectSeen(imported.length === 2, 'an import did not store its users');
      const last = await users.lastId();
      const page = await users.page('json', 0, last);
      expectSeen(page.lastId === last, 'the list of users does not end with the last one');
      await users.lists.page({
        filters: [],
        order: [{ field: 'id', descending: true }],
        fields: ['id', 'name', 'email'],
        limit: 2,
        next: undefined,
        backwards: false,
      });
      await users.lists.count([]);
      await users.lists.cursorKey();
      await users.state();
      expectSeen(await users.remove(id), 'a user was not removed');
      expectSeen((await users.removeIf(other, condition)).is === 'removed', 'a user was not removed');
      expectSeen((await users.read(id)) === undefined, 'a removed user is still there');
      await Promise.all([database.ping(), database.pingWriter()]);
      return `${last} users, with an import and a create that was repeated`;
    },
  },
  {
    name: 'relations',
    promise: 'Rows of declared relations are written, embedded, listed and recorded',
    needs: ['migrations'],
    meaning:
      'Requests for relations fail or answer wrongly here. Without a declaration of relations this does not matter.',
    timeout: MIGRATION_TIMEOUT,
    async run(bench) {
      const database = await openStores(bench);
      // Their tables are made at a start that may migrate.
      const starting = await bench.use(openPostgres(bench.url, { schema: bench.schema }));
      const problems: string[] = [];
      const relations = readRelations({ value: BOOKS, path: 'relations' }, problems);
      expectSeen(problems.length === 0, problems.join('; '));
      const { stores, changes } = await starting.openRelations(relations);
      const beside = await database.openRelations(relations);
      const [authors, books] = ['authors', 'books'].map((name) => stores.get(name)) as [RowStore, RowStore];
      await authors.create([[null, 'Ada', null]]);
      const row = (title: string) => {
        const values = { title, price: '1.50', about: '{"a":1}', author_id: 1 };
        return books.relation.columns.map(({ name }) =>
          name in values ? values[name as keyof typeof values] : null,
        );
      };
      const made = await Promise.allSettled(
        [books, beside.stores.get('books') as RowStore].map((store) => store.create([row('One')])),
      );
      const count = made.filter(({ status }) => status === 'fulfilled').length;
      expectSeen(count === 1, `two creates with the same unique values stored ${count} rows`);
      await books.create([row('Two')]);
      const all = { is: 'and', all: [] } as const;
      const byName = new Map(relations.map((relation) => [relation.name, relation]));
      const query = { fields: 'title,label,author(name)', sort: '-title', 'author.name:prefix': 'A' };
      const { where, order, fields, selection, limit } = readRowList(byName, books.relation, query, false);
      const shape = { where, order, fields, ...(selection && { selection }) };
      const page = await books.lists.page({ shape, limit, next: undefined, backwards: false });
      const json = '{"title":"Two","label":"Two!","author":{"name":"Ada"}}';
      expectSeen(page.count === 2 && page.json.startsWith(json), `a list gave ${page.json}`);
      await books.lists.count(all);
      const key = [Number(page.last?.at(-1))];
      const price = books.relation.columns.findIndex(({ name }) => name === 'price');
      const changed = await books.change(key, new Map([[price, '2.00']]), undefined);
      expectSeen(changed.is === 'changed', 'a row was not changed');
      const follower = await changes?.follow();
      await authors.remove([1], undefined);
      expectSeen((await books.lists.count(all)) === 0, 'ON DELETE CASCADE left rows');
      const recorded: string[] = [];
      while (follower !== undefined && recorded.length < 3) {
        const { value = [], done } = await follower.next();
        recorded.push(...value.map(({ type }) => type));
        if (done === true) break;
      }
      await follower?.return();
      expectSeen(recorded.join() === 'deleted,deleted,deleted', `a removal recorded: ${recorded.join(', ')}`);
      return 'a unique was kept, a list had embedded rows, a removal and its cascade were recorded';
    },
  },
  {
    name: 'changes',
    promise: 'Changes are numbered without gaps and seen once, whatever the order of their commits',
    needs: ['migrations'],
    meaning: 'Streams and subscriptions could miss a change or deliver it twice. Do not rely on them here.',
    async run(bench) {
      const [one, two, late] = [await openStores(bench), await openStores(bench), await bench.connect()];
      const start = await one.userEvents.newest();
      await late.run({ text: 'BEGIN' }, undefined);
      const text = `INSERT INTO user_events (type, at, user_id, name, email) VALUES ('created', 1, 0, 'late', '')`;
      await late.run({ text }, undefined);
      const user = { name: 'early', email: '' };
      await Promise.all(
        Array.from({ length: CHANGES }, (_, i) => (i % 2 === 0 ? one : two).users.create(user)),
      );
      const before = await readEvents(two.userEvents, start);
      expectSeen(before.length === CHANGES, `${CHANGES} changes were committed, and ${before.length} seen`);
      await late.run({ text: 'COMMIT' }, undefined);
      const [first, second] = await Promise.all([one, two].map((each) => readEvents(each.userEvents, start)));
      const events = first ?? [];
      expectSeen(
        namesOf(events) === namesOf(second ?? []),
        'two processes read the changes in different orders',
      );
      const gapless = events.every(({ position }, i) => position === start.position + i + 1);
      expectSeen(
        gapless,
        `the numbers are ${events.map(({ position }) => position).join(', ')} after ${start.position}`,
      );
      expectSeen(
        events.length === CHANGES + 1,
        `${CHANGES + 1} changes were committed, and ${events.length} seen`,
      );
      const last = String(events.at(-1)?.json);
      expectSeen(last.includes('"late"'), 'a change that was committed late has an earlier number');
      return `${events.length} changes of several sessions, of which the first was committed last`;
    },
  },
];

/** All events after a position. */
async function readEvents(log: EventLog<UserEvent>, after: EventPosition): Promise<readonly UserEvent[]> {
  const events: UserEvent[] = [];
  for (;;) {
    const page = await log.read(events.at(-1) ?? after, CHANGES, SIZE);
    if (page === undefined) throw new NotSeenError('the change to start from is gone');
    events.push(...page.events);
    if (!page.more && page.events.length === 0) return events;
  }
}

function namesOf(events: readonly UserEvent[]): string {
  return events.map(({ position, json }) => `${position} ${json}`).join('\n');
}
