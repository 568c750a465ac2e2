import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inspect } from 'node:util';
import fc from 'fast-check';
import type { Relation } from '../../src/relations/relation.ts';
import { importTo, linesOf } from '../rest/support/rest-door.ts';
import { rounds } from '../support/proof-settings.ts';
import type { Body } from '../support/relations/model.ts';
import { bodies, declarations } from '../support/relations/random-declarations.ts';
import { type RelationDoor, relationDoors } from '../support/relations/relation-door.ts';
import { column, LIBRARY, relation, SPECIMENS } from '../support/relations/relations.ts';

const NDJSON = 'application/x-ndjson';
const CSV = 'text/csv';
const RUNS: Readonly<Record<string, number>> = { sqlite: rounds(15), postgres: rounds(8) };

const ndjson = (rows: readonly unknown[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join('');

async function exportOf(door: RelationDoor, path: string, type = NDJSON): Promise<string> {
  const reply = await door.get(path, { accept: type });
  assert.equal(reply.status, 200, reply.text);
  return reply.text;
}

/** Sends an import; again as long as the machine is too busy to begin it. */
async function report(door: RelationDoor, { name }: Relation, type: string, text: string) {
  for (;;) {
    const reply = await door.send('POST', `/${name}`, text, { 'content-type': type });
    if (reply.status !== 503) return linesOf(reply.text);
  }
}

/** Imports an export of the same relation; a number that the service assigns differs. */
async function reimport(door: RelationDoor, relation: Relation, type: string, text: string): Promise<void> {
  const lines = await report(door, relation, type, text);
  assert.equal(lines.at(-1)?.refused, 0, inspect([relation, text, lines], { depth: 9 }));
}

for (const [engine, open] of Object.entries(relationDoors)) {
  describe(`exports of relations on ${engine}`, () => {
    test('an export has all rows in the order of their key, or those that match', async () => {
      await using door = await open(LIBRARY);
      await door.send('POST', '/authors', [{ name: 'a' }, { name: 'b "q", c' }]);
      const rows = Array.from({ length: 6_500 }, (_, i) => ({ title: `t${i}`, author_id: 1 + (i % 2) }));
      await importTo(door.url, { 'content-type': NDJSON, prefer: 'return=minimal' }, ndjson(rows), '/books');
      const all = linesOf(await exportOf(door, '/books'));
      assert.deepEqual(
        all.map(({ title }) => title),
        rows.map(({ title }) => title),
      );
      assert.deepEqual(all[0], (await door.get('/books/1')).body);
      const found = await exportOf(
        door,
        '/books?author.name:prefix=b&title:prefix=t64&fields=title,price',
        CSV,
      );
      const expected = rows.filter(({ title }, i) => i % 2 === 1 && title.startsWith('t64'));
      assert.equal(found, `title,price\r\n${expected.map(({ title }) => `"${title}",9.90\r\n`).join('')}`);
      // No index serves this, and none of the rows before the last page matches.
      assert.equal(await exportOf(door, '/books?title=t6499&fields=title'), '{"title":"t6499"}\n');
      assert.equal(await exportOf(door, '/authors', CSV), 'id,name,born\r\n1,"a",\r\n2,"b ""q"", c",\r\n');
      assert.equal(await exportOf(door, '/loans', CSV), 'book_id,reader,until\r\n');
      assert.equal(await exportOf(door, '/loans'), '');
      const reply = await door.get('/books', { accept: 'text/csv, application/json;q=0.5' });
      assert.equal(reply.headers.get('content-type'), 'text/csv; charset=utf-8');
      assert.equal(reply.headers.get('vary'), 'accept');
      const head = await door.send('HEAD', '/books', undefined, { accept: NDJSON });
      assert.deepEqual([head.status, head.text, head.headers.get('content-type')], [200, '', NDJSON]);
      for (const query of ['limit=2', 'sort=title', 'cursor=x', 'titel=x']) {
        const refused = await door.get(`/books?${query}`, { accept: CSV });
        assert.deepEqual([refused.status, refused.body.code], [400, 'INVALID_PARAMETER'], query);
      }
    });

    test('a row may have more columns than a function of the engine takes arguments', async () => {
      const names = Array.from({ length: 120 }, (_, i) => `c${i}`);
      const nullable = (i: number) => ({ nullable: i % 2 === 0 });
      const id = column('id', { kind: 'serial', open: false });
      const columns = [id, ...names.map((name, i) => column(name, { kind: 'integer' }, nullable(i)))];
      await using door = await open([relation('wides', { columns })]);
      const row = Object.fromEntries(names.map((name, i) => [name, i % 4 === 0 ? null : i]));
      await door.send('POST', '/wides', row);
      assert.equal(await exportOf(door, '/wides'), `${JSON.stringify({ id: 1, ...row })}\n`);
      const values = Object.values(row).map((value) => value ?? '');
      assert.equal(await exportOf(door, '/wides', CSV), `id,${names}\r\n1,${values}\r\n`);
    });

    const isPaced = engine === 'postgres';
    test('pieces look at fewer rows if a statement takes too long, and one that alone does ends the export', {
      skip: isPaced ? false : 'SQLite reads row by row: src/sql/list-sql.test.ts',
    }, async () => {
      await using door = await open(LIBRARY);
      await door.send('POST', '/authors', [{ name: 'a' }, { name: 'a' }]);
      const rows = Array.from({ length: 90 }, (_, i) => ({ title: `t${i}`, author_id: 1 }));
      rows.push({ title: 'last', author_id: 2 });
      await door.send('POST', '/books', rows);
      // Looks at five rows in the time of a statement, and never at the author of the last book.
      await door.run(`
        CREATE FUNCTION in_time(id bigint) RETURNS boolean LANGUAGE plpgsql AS $$
        DECLARE looked int := 1 + coalesce(nullif(current_setting('test.looked', true), ''), '0')::int;
        BEGIN
          PERFORM set_config('test.looked', looked::text, true);
          IF looked > 5 OR id = 2 THEN RAISE EXCEPTION 'too long' USING ERRCODE = 'query_canceled'; END IF;
          RETURN true;
        END $$;
        ALTER TABLE authors RENAME TO plain_authors;
        CREATE VIEW authors AS SELECT * FROM plain_authors WHERE in_time(id)`);
      const path = '/books?author.name=a&fields=title';
      const expected = ndjson(rows.slice(0, 90).map(({ title }) => ({ title })));
      const response = await fetch(`${door.url}${path}`, { headers: { accept: NDJSON } });
      assert.equal(response.status, 200);
      let text = '';
      await assert.rejects(async () => {
        for await (const piece of response.body ?? []) text += Buffer.from(piece).toString();
      });
      assert.equal(text, expected);
      await door.run(`DELETE FROM books WHERE title = 'last'`);
      assert.equal(await exportOf(door, path), expected);
    });

    test('rows that come after the start of an export are left out, those before its place are not read again', async () => {
      await using door = await open(LIBRARY);
      await door.send('POST', '/authors', { name: 'a' });
      const books = Array.from({ length: 30 }, (_, i) => ({ title: `b${i}`, author_id: 1 }));
      await door.send('POST', '/books', books);
      const long = 'r'.repeat(50);
      const loans = Array.from({ length: 30_000 }, (_, i) => ({
        book_id: 1 + Math.floor(i / 1_000),
        reader: `${long}${String(i).padStart(6, '0')}`,
      }));
      const headers = { 'content-type': NDJSON, prefer: 'return=minimal' };
      await importTo(door.url, headers, ndjson(loans), '/loans');
      const response = await fetch(`${door.url}/loans`, { headers: { accept: NDJSON } });
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      let text = (await reader?.read())?.value ?? '';
      await door.send('POST', '/loans', { book_id: 30, reader: 'z' });
      await door.send('POST', '/loans', { book_id: 1, reader: 'a' });
      for (;;) {
        const { value, done } = (await reader?.read()) ?? { done: true };
        if (done) break;
        text += value;
      }
      assert.deepEqual(
        linesOf(text).map(({ reader: each }) => each),
        loans.map(({ reader: each }) => each),
      );
    });

    test('an export of large rows comes in small pieces', async () => {
      await using door = await open([SPECIMENS]);
      const raw = Buffer.alloc(100, 7).toString('base64');
      const rows = Array.from({ length: 3_000 }, (_, i) => ({ code: `c${i}`, raw, data: ['x'.repeat(900)] }));
      const imported = await importTo(
        door.url,
        { 'content-type': NDJSON, prefer: 'return=minimal' },
        ndjson(rows),
        '/specimens',
      );
      assert.deepEqual(linesOf(imported), [{ created: 3_000, refused: 0 }]);
      const lines = linesOf(await exportOf(door, '/specimens?fields=code,raw,data'));
      assert.deepEqual(
        lines,
        rows.map(({ code, raw: bytes, data }) => ({ code, data, raw: bytes })),
      );
    });

    test('what was exported can be imported again with the same values', async () => {
      await fc.assert(
        fc.asyncProperty(declarations, fc.gen(), async ({ relations }, draw) => {
          const plain = relations.map((each) => ({ ...each, references: [], inverses: [] }));
          await using door = await open(plain);
          for (const each of plain) {
            const rows: Body[] = Array.from({ length: 8 }, () => draw(bodies, each));
            const given = ndjson(rows.map((row) => withNulls(each, row)));
            const stored = Number((await report(door, each, NDJSON, given)).at(-1)?.created);
            const isAssigned = (name: string) =>
              each.columns.some(
                ({ name: own, type }) => own === name && type.kind === 'serial' && !type.open,
              );
            const withoutAssigned = (text: string) =>
              linesOf(text).map((line) => Object.entries(line).filter(([name]) => !isAssigned(name)));
            const first = await exportOf(door, `/${each.name}`);
            const list = (await door.get(`/${each.name}?limit=1000`)).body as readonly object[];
            assert.deepEqual(linesOf(first), list);
            assert.equal(list.length, stored);
            for (const type of [NDJSON, CSV]) {
              const text = await exportOf(door, `/${each.name}`, type);
              await door.run(`DELETE FROM "${each.table}"`);
              await reimport(door, each, type, text);
              const again = await exportOf(door, `/${each.name}`);
              assert.deepEqual(withoutAssigned(again), withoutAssigned(first), text);
            }
          }
        }),
        { numRuns: RUNS[engine] ?? 8, endOnFailure: true },
      );
    });
  });
}

/** The row with its references' columns, which need no row here. */
function withNulls({ columns }: Relation, row: Body): Body {
  const missing = columns.filter(
    ({ name, type, nullable, default: value }) =>
      !(name in row) && type.kind !== 'serial' && !nullable && value === undefined,
  );
  return { ...row, ...Object.fromEntries(missing.map(({ name, type }) => [name, anyOf(type.kind)])) };
}

function anyOf(kind: string): unknown {
  const values: Readonly<Record<string, unknown>> = {
    integer: 1,
    bigint: '1',
    text: 'a',
    date: '2024-02-29',
    timestamp: '2024-02-29T00:00:00Z',
    uuid: '0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b',
  };
  return values[kind] ?? null;
}
