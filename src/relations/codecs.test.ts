import assert from 'node:assert/strict';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { after, describe, test } from 'node:test';
import { inspect } from 'node:util';
import fc from 'fast-check';
import pg from 'pg';
import { postgresUrl, withoutPostgres } from '../../test/support/databases.ts';
import { columnTypes, jsonOf } from '../../test/support/relations/random-columns.ts';
import type { Bound, Present } from './codec.ts';
import { codecOf, compareNullable, SQLITE_BASE64 } from './codecs.ts';
import type { ColumnType, Value } from './relation.ts';

/** A table with one column of a type, in a real engine. */
interface Column {
  /** Stores the values in this order. */
  fill(values: readonly Value[]): Promise<void>;
  /** The results of an expression, by the order of storing or another one. */
  all(expression: string, order?: string): Promise<readonly unknown[]>;
}

const sqlite = new DatabaseSync(':memory:');
sqlite.function(SQLITE_BASE64.name, { deterministic: true }, SQLITE_BASE64.call);
after(() => sqlite.close());

/** SQLite as the service opens it: results with numbers, not with bigints. */
function inSqlite(type: ColumnType): Column {
  const { sqlite: storage } = codecOf(type);
  sqlite.exec(`DROP TABLE IF EXISTS t; CREATE TABLE t (n INTEGER PRIMARY KEY, c ${storage.type}) STRICT`);
  const insert = sqlite.prepare('INSERT INTO t VALUES (?, ?)');
  return {
    async fill(values) {
      sqlite.exec('DELETE FROM t');
      for (const [n, value] of values.entries()) insert.run(n, storage.bind(value) as SQLInputValue);
    },
    async all(expression, order = 'n') {
      const rows = sqlite.prepare(`SELECT ${expression} AS v FROM t ORDER BY ${order}`).all();
      return rows.map(({ v }) => v);
    },
  };
}

let client: Promise<pg.Client> | undefined;

async function connect(): Promise<pg.Client> {
  const connected = new pg.Client({ connectionString: await postgresUrl() });
  // The server may end before the client does.
  connected.on('error', () => {});
  await connected.connect();
  // The session's settings decide nothing.
  await connected.query(`SET timezone = 'Asia/Kathmandu'; SET datestyle = 'SQL, DMY'`);
  return connected;
}

async function inPostgres(type: ColumnType): Promise<Column> {
  client ??= connect();
  const db = await client;
  const { postgres: storage } = codecOf(type);
  const collation = storage.type === 'text' ? ' COLLATE "C"' : '';
  await db.query(`DROP TABLE IF EXISTS t; CREATE TABLE t (n int PRIMARY KEY, c ${storage.type}${collation})`);
  return {
    async fill(values) {
      await db.query('TRUNCATE t');
      for (const [n, value] of values.entries()) {
        const bound: Bound = storage.bind(value);
        await db.query(`INSERT INTO t VALUES ($1, $2::${storage.type})`, [n, bound]);
      }
    },
    async all(expression, order = 'n') {
      const { rows } = await db.query<{ v: unknown }>(`SELECT ${expression} AS v FROM t ORDER BY ${order}`);
      return rows.map(({ v }) => v);
    },
  };
}

const stores = {
  sqlite: { open: async (type: ColumnType) => inSqlite(type), object: 'json_object', skip: undefined },
  postgres: { open: inPostgres, object: 'json_build_object', skip: withoutPostgres },
} as const;

const kinds = Object.keys(columnTypes) as ColumnType['kind'][];

/** A type with values of it that its codec accepted, null among them. */
function typed(kind: ColumnType['kind'], most: number) {
  return columnTypes[kind].chain((type) =>
    fc.record({
      type: fc.constant(type),
      values: fc.array(
        fc.option(
          jsonOf(type).map((json) => accepted(type, json)),
          { freq: 8 },
        ),
        {
          maxLength: most,
        },
      ),
    }),
  );
}

function accepted(type: ColumnType, json: unknown): Present {
  const parsed = codecOf(type).parse(json);
  assert.ok('value' in parsed, inspect([type, json, parsed]));
  return parsed.value;
}

for (const [engine, { open, object, skip }] of Object.entries(stores)) {
  describe(`codecs on ${engine}`, { skip: skip ?? false }, () => {
    after(async () => (await client)?.end());
    for (const kind of kinds) {
      test(`a ${kind} comes back as it was stored, and is sorted as it compares`, async () => {
        const runs = engine === 'sqlite' ? 60 : 15;
        await fc.assert(
          fc.asyncProperty(typed(kind, 20), async ({ type, values }) => {
            const codec = codecOf(type);
            const { select, read, json, compared } = codec[engine as 'sqlite'];
            const column = await open(type);
            await column.fill(values);
            assert.deepEqual((await column.all(select('c'))).map(read), values);
            // The member of an object is what a client gets.
            const objects = await column.all(`CAST(${object}('c', ${json('c')}) AS TEXT)`);
            for (const [n, text] of objects.entries()) {
              const value = values[n] ?? null;
              const expected = value === null ? null : (JSON.parse(codec.format(value)) as unknown);
              assert.deepEqual((JSON.parse(String(text)) as { c: unknown }).c, expected);
            }
            if (kind === 'json') return;
            for (const descending of [false, true]) {
              const sorted = [...values.keys()].toSorted(
                (a, b) => compareNullable(codec, values[a] ?? null, values[b] ?? null, descending) || a - b,
              );
              const order = `c IS NULL, ${compared('c')} ${descending ? 'DESC' : 'ASC'}, n`;
              assert.deepEqual((await column.all('n', order)).map(Number), sorted);
            }
          }),
          { numRuns: runs },
        );
      });
    }
  });
}

for (const kind of kinds) {
  test(`the JSON and the text of a ${kind} are read as the same value`, () => {
    fc.assert(
      fc.property(typed(kind, 5), ({ type, values }) => {
        const codec = codecOf(type);
        for (const value of values) {
          if (value === null) continue;
          assert.deepEqual(codec.parse(JSON.parse(codec.format(value))), { value });
          assert.deepEqual(codec.parseText(codec.formatText(value)), { value });
        }
      }),
    );
  });

  test(`a ${kind} is read from anything, or refused with a reason`, () => {
    fc.assert(
      fc.property(columnTypes[kind], fc.oneof(fc.jsonValue(), fc.double(), fc.string()), (type, given) => {
        const codec = codecOf(type);
        const json: unknown = JSON.parse(JSON.stringify(given) ?? 'null');
        if (json === null) return;
        for (const parsed of [
          codec.parse(json),
          codec.parseText(typeof json === 'string' ? json : JSON.stringify(json)),
        ]) {
          if ('value' in parsed)
            assert.deepEqual(codec.parse(JSON.parse(codec.format(parsed.value))), parsed);
          else assert.match(parsed.problem, /^must \S/);
        }
      }),
    );
  });
}

function parsed(type: ColumnType, json: unknown): unknown {
  const result = codecOf(type).parse(json);
  return 'value' in result ? result.value : result.problem;
}

function parsedText(type: ColumnType, text: string): unknown {
  const result = codecOf(type).parseText(text);
  return 'value' in result ? result.value : result.problem;
}

test('64-bit integers and decimals keep every digit, and a JSON number that may have lost one is refused', () => {
  const big: ColumnType = { kind: 'bigint' };
  assert.equal(parsed(big, '9223372036854775807'), 2n ** 63n - 1n);
  assert.equal(parsed(big, '-9223372036854775808'), -(2n ** 63n));
  assert.equal(parsed(big, '9223372036854775808'), 'must be at most 9223372036854775807');
  assert.equal(parsed(big, '-99999999999999999999999'), 'must be at least -9223372036854775808');
  assert.equal(parsed(big, 42), 42n);
  assert.equal(parsed(big, 2 ** 53), 'must be a text, because a JSON number of this size loses digits');
  assert.equal(parsed(big, '1e3'), 'must be a whole number, as a text such as "42"');
  const price: ColumnType = { kind: 'decimal', precision: 18, scale: 2, min: '-1.00' };
  assert.equal(parsed(price, '1234567890123456.78'), '1234567890123456.78');
  assert.equal(parsed(price, '12345678901234567'), 'must have at most 16 digits before the point');
  assert.equal(parsed(price, '0.5'), '0.50');
  assert.equal(parsed(price, '0.500'), '0.50');
  assert.equal(parsed(price, '0.505'), 'must have at most 2 digits after the point');
  assert.equal(parsed(price, '-0.00'), '0.00');
  assert.equal(parsed(price, '-1.01'), 'must be at least -1.00');
  assert.equal(parsed(price, 39.62), '39.62');
  assert.equal(parsed(price, 1e15), '1000000000000000.00');
  assert.equal(
    parsed(price, 1234567890123456.8),
    'must be a text, because a JSON number of so many digits loses some',
  );
  assert.equal(parsed(price, '1,5'), 'must be a decimal number, as a text such as "12.50"');
  assert.equal(
    parsed({ kind: 'decimal', precision: 3, scale: 0 }, '1.5'),
    'must have no digits after the point',
  );
  assert.equal(
    parsed({ kind: 'decimal', precision: 3, scale: 3 }, '1'),
    'must have at most 0 digits before the point',
  );
  assert.equal(Object.is(parsed({ kind: 'integer' }, -0), 0), true);
  assert.equal(parsed({ kind: 'integer' }, 2 ** 53), 'must be at most 9007199254740991');
  assert.equal(parsed({ kind: 'serial', open: true }, 0), 'must be at least 1');
});

test('a time is read with its zone and keeps its millisecond', () => {
  const type: ColumnType = { kind: 'timestamp' };
  const at = Date.parse('2024-02-29T12:30:00.120Z');
  for (const text of [
    '2024-02-29T12:30:00.12Z',
    '2024-02-29t12:30:00.120z',
    '2024-02-29T14:15:00.120000+01:45',
    '2024-02-28T23:30:00.12-13:00',
  ]) {
    assert.equal(parsed(type, text), at, text);
  }
  assert.equal(codecOf(type).format(at), '"2024-02-29T12:30:00.120Z"');
  const shape = 'must be a time as RFC 3339 writes it, such as "2024-02-29T12:30:00.000Z"';
  for (const text of [
    '2023-02-29T00:00:00Z',
    '2024-02-29T24:00:00Z',
    '2024-02-29T23:59:60Z',
    '2024-02-29T00:00:00',
    '2024-02-29 00:00:00Z',
    '2024-02-29T00:00:00+24:00',
    '2024-02-29',
    '0000-12-31T23:00:00Z',
    1_709_209_800_000,
  ]) {
    assert.equal(parsed(type, text), shape, String(text));
  }
  assert.equal(parsed(type, '2024-02-29T00:00:00.1234Z'), 'must have at most 3 digits of a second');
  for (const text of ['0001-01-01T00:00:00+00:01', '9999-12-31T23:59:59-00:01']) {
    assert.equal(parsed(type, text), 'must be a time in the years 0001 to 9999, in UTC');
  }
});

test('texts are counted in characters, and what PostgreSQL cannot store is refused', () => {
  const type: ColumnType = { kind: 'text', max: 3, fold: false };
  assert.equal(parsed(type, '🦊🦊🦊'), '🦊🦊🦊');
  assert.equal(parsed(type, '🦊🦊🦊a'), 'must have at most 3 characters');
  assert.equal(parsed(type, 'a\0'), 'must not contain the character NUL');
  assert.equal(parsed(type, 'a\ud800'), 'must not contain half of a surrogate pair');
  assert.equal(parsed(type, 7), 'must be a text');
  const json: ColumnType = { kind: 'json', maxBytes: 40 };
  for (const document of ['a\0', { 'a\0': 1 }, ['\udfff'], ['\\\0']]) {
    assert.equal(parsed(json, document), 'must not contain the character NUL or half of a surrogate pair');
  }
  assert.equal(parsed(json, ['\\u0000', '\\\\ud800']), '["\\\\u0000","\\\\\\\\ud800"]');
  assert.equal(parsed(json, 'ä'.repeat(20)), 'must have at most 40 bytes as JSON');
  assert.equal(
    parsed(json, [Number.POSITIVE_INFINITY]),
    'must not contain a number beyond 1.7976931348623157e308',
  );
  assert.equal(parsedText(json, '{'), 'must be JSON');
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  assert.equal(parsedText({ kind: 'json', maxBytes: 1_000_000 }, deep), 'must have at most 200 levels');
  const bytes: ColumnType = { kind: 'bytes', max: 5 };
  assert.deepEqual(parsed(bytes, 'aGVsbG8='), new TextEncoder().encode('hello'));
  for (const text of ['aGVsbG8', 'aGVsbG9=', 'aGVs bG8', '-_==']) {
    assert.equal(parsed(bytes, text), 'must be bytes in base64, such as "aGVsbG8="', text);
  }
  assert.equal(parsed(bytes, Buffer.from('hello!').toString('base64')), 'must have at most 5 bytes');
  assert.deepEqual(
    (parsed({ kind: 'bytes', max: 2 ** 20 }, Buffer.alloc(2 ** 20, 7).toString('base64')) as Uint8Array)
      .length,
    2 ** 20,
  );
});

test('the other types say what they take', () => {
  assert.equal(parsed({ kind: 'boolean' }, 1), 'must be true or false');
  assert.equal(parsedText({ kind: 'boolean' }, 'TRUE'), 'must be true or false');
  const kind: ColumnType = { kind: 'enum', values: ['alpha', 'beta'] };
  assert.equal(parsed(kind, 'gamma'), 'must be one of "alpha", "beta"');
  assert.equal(parsed({ kind: 'enum', values: ['a'] }, ''), 'must be "a"');
  assert.equal(parsed({ kind: 'number', min: 0 }, -0.5), 'must be at least 0');
  assert.equal(parsedText({ kind: 'number' }, '1e999'), 'must be a number of at most 1.7976931348623157e308');
  assert.equal(parsedText({ kind: 'number' }, ''), 'must be a number');
  assert.equal(parsedText({ kind: 'integer', min: 1 }, '01'), 'must be a whole number');
  const date = 'must be a date from 0001-01-01 to 9999-12-31, such as "2024-02-29"';
  for (const text of ['2023-02-29', '2024-2-29', '0000-01-01', '10000-01-01', '2024-13-01', '']) {
    assert.equal(parsed({ kind: 'date' }, text), date, text);
  }
  assert.equal(
    parsed({ kind: 'uuid' }, '0190A1B2-C3D4-7E5F-8A9B-0C1D2E3F4A5B'),
    '0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b',
  );
  assert.match(String(parsed({ kind: 'uuid' }, '0190a1b2c3d47e5f8a9b0c1d2e3f4a5b')), /^must be a UUID/);
});

test('a key of 64 bits leaves the connection of SQLite as it was', () => {
  for (const type of [{ kind: 'bigint' }, { kind: 'decimal', precision: 18, scale: 2 }] as const) {
    const { sqlite: storage } = codecOf(type);
    using db = new DatabaseSync(':memory:');
    db.exec(`CREATE TABLE t (k ${storage.type} NOT NULL, PRIMARY KEY (k)) STRICT; CREATE TABLE u (v)`);
    const value = accepted(type, type.kind === 'bigint' ? '9223372036854775807' : '9999999999999999.99');
    db.prepare('INSERT INTO t VALUES (?)').run(storage.bind(value) as SQLInputValue);
    assert.equal(db.prepare('DELETE FROM u').run().changes, 0);
  }
});
