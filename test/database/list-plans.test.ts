import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { readListParameters } from '../../src/relations/lists.ts';
import {
  type Bound,
  type BoundStatement,
  type ListDialect,
  ListSql,
  planList,
} from '../../src/sql/list-sql.ts';
import { openDatabase } from '../../src/sql/open.ts';
import { postgresLists, sqliteLists } from '../../src/sql/user-lists.ts';
import { withoutPostgres } from '../support/databases.ts';
import { type PostgresDatabases, sharedPostgres } from '../support/postgres.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const USERS = 20_000;
const LIMIT = 10;

/** What each list must be found by: a key or an index of the users. */
const LISTS: Readonly<Record<string, 'id' | 'users_name' | 'users_email' | 'users_text'>> = {
  '': 'id',
  'sort=-id': 'id',
  'sort=name': 'users_name',
  'sort=-name': 'users_name',
  'sort=name,-id': 'users_name',
  'sort=email': 'users_email',
  'name=name 77': 'users_name',
  'email=E77@X.ORG&sort=email': 'users_email',
  'name:prefix=name 1': 'users_name',
  'email:prefix=e19&sort=-email': 'users_email',
  'email:contains=9876': 'users_text',
  'q=name 9876': 'users_text',
  'id=7': 'id',
  'name:prefix=name&email=e7@x.org': 'users_email',
  'name:contains=123&email:prefix=e': 'users_text',
};

/** The statement for the first page of a list, or for the one behind a user far down. */
function statement(dialect: ListDialect, query: string, isFirst: boolean): BoundStatement {
  const given = Object.fromEntries(new URLSearchParams(`limit=${LIMIT}&${query}`));
  const asked = readListParameters(given, false);
  assert.ok(asked !== undefined);
  const keys = { id: 15_000, name: 'name 15000', email: 'e15000@x.org' };
  const next = isFirst ? undefined : asked.order.map(({ field }) => keys[field]);
  // The state of the users is read from their ends and from a small table.
  return new ListSql({ ...dialect, state: "'state'" }).page(planList(asked, 'text'), {
    ...asked,
    next,
    backwards: false,
  });
}

test('SQLite finds every list, on any page, by a key or an index', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'users.db');
  await openDatabase(`sqlite:${file}`, { userIndexes: { search: 'text' } })[Symbol.asyncDispose]();
  using db = new DatabaseSync(file);
  db.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${USERS})
    INSERT INTO users (name, email) SELECT 'name ' || i, 'e' || i || '@x.org' FROM n`);
  for (const [query, index] of Object.entries(LISTS)) {
    for (const isFirst of [true, false]) {
      const { text, values } = statement(sqliteLists, query, isFirst);
      const rows = db.prepare(`EXPLAIN QUERY PLAN ${text}`).all(...(values as readonly string[]));
      const plan = rows.map(({ detail }) => String(detail));
      const found = plan.filter((line) => /\busers(?:_text)?\b/.test(line));
      assert.ok(found.length > 0, query);
      const expected = {
        id: /INTEGER PRIMARY KEY|SCAN users$/,
        users_text: /users_text|INTEGER PRIMARY KEY/,
      };
      for (const line of found) {
        assert.match(
          line,
          index === 'id' || index === 'users_text' ? expected[index] : new RegExp(`USING INDEX ${index}`),
          query,
        );
        // Whole indexes are read from their ends only.
        if (!isFirst)
          assert.doesNotMatch(line, /^SCAN users(?: USING INDEX \w+)?$/, `${query}: ${plan.join('\n')}`);
      }
      if (index === 'users_text')
        assert.ok(
          found.some((line) => line.includes('users_text VIRTUAL TABLE')),
          query,
        );
    }
  }
});

describe('PostgreSQL', { skip: withoutPostgres ?? false }, () => {
  let server: PostgresDatabases;
  before(async () => {
    server = await sharedPostgres();
  });
  after(() => server[Symbol.asyncDispose]());

  const literal = (value: Bound | undefined): string => {
    if (typeof value === 'number') return String(value);
    if (typeof value === 'string') return `'${value}'`;
    return `ARRAY[${value?.map(literal).join()}]`;
  };

  test('knows how many users an index finds as soon as it is made', async () => {
    const url = await server.createDatabase();
    await (await openDatabase(url))[Symbol.asyncDispose]();
    await server.sql(
      `INSERT INTO users (name, email) SELECT 'name ' || i, 'e' || i || '@x.org' FROM generate_series(1, 500) AS i`,
      url,
    );
    await (await openDatabase(url, { userIndexes: { search: 'keys' } }))[Symbol.asyncDispose]();
    const known = await server.sql(
      `SELECT tablename FROM pg_stats WHERE tablename LIKE 'users_%' ORDER BY 1`,
      url,
    );
    assert.deepEqual(known.flat(), ['users_email', 'users_name']);
  });

  test('finds every list, on any page, by an index, and reads little more than a page', async () => {
    const url = await server.createDatabase();
    await (await openDatabase(url, { userIndexes: { search: 'text' } }))[Symbol.asyncDispose]();
    await server.sql(
      `INSERT INTO users (name, email) SELECT 'name ' || i, 'e' || i || '@x.org' FROM generate_series(1, ${USERS}) AS i`,
      url,
    );
    await server.sql('VACUUM ANALYZE users', url);
    for (const [query, index] of Object.entries(LISTS)) {
      for (const isFirst of [true, false]) {
        const { text, values } = statement(postgresLists, query, isFirst);
        const bound = text.replace(/\$(\d+)/g, (_, nth) => literal(values[Number(nth) - 1]));
        const rows = await server.sql(`EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) ${bound}`, url);
        const plan = rows.flat().join('\n');
        assert.doesNotMatch(plan, /Seq Scan/, query);
        assert.match(
          plan,
          new RegExp(index === 'id' ? 'users_pkey' : `\\b(?:using|on) ${index}\\b`),
          `${query}\n${plan}`,
        );
        if (index !== 'users_text')
          assert.doesNotMatch(plan, /Rows Removed by Filter: \d{3}/, `${query}\n${plan}`);
        const read = [...plan.matchAll(/actual rows=(\d+)/g)].map(([, count]) => Number(count));
        if (index !== 'users_text') assert.ok(Math.max(...read) <= 3 * LIMIT, `${query}\n${plan}`);
      }
    }
  });
});
