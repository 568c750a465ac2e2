import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { codecOf } from '../../src/relations/codecs.ts';
import type { Column, ColumnType, Relation } from '../../src/relations/relation.ts';
import { importTo, linesOf, openImport } from '../rest/support/rest-door.ts';
import { rounds } from '../support/proof-settings.ts';
import { type Body, Model } from '../support/relations/model.ts';
import { jsonOf } from '../support/relations/random-columns.ts';
import { bodies, declarations } from '../support/relations/random-declarations.ts';
import { type RelationDoor, relationDoors } from '../support/relations/relation-door.ts';
import { column, LIBRARY, relation, SPECIMENS, text } from '../support/relations/relations.ts';
import { waitFor } from '../support/wait-for.ts';

const NDJSON = { 'content-type': 'application/x-ndjson' };
const CSV = { 'content-type': 'text/csv' };
const ndjson = (rows: readonly unknown[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join('');
const RUNS: Readonly<Record<string, number>> = { sqlite: rounds(12), postgres: rounds(6) };

/** Employees, who refer to each other. */
const STAFF: Relation = relation('staff', {
  columns: [
    column('id', { kind: 'serial', open: true }),
    column('name', text(20)),
    column('boss_id', { kind: 'integer' }, { nullable: true }),
  ],
  unique: [['name']],
  references: [
    {
      name: 'boss',
      to: 'staff',
      columns: ['boss_id'],
      targetColumns: ['id'],
      inverse: 'team',
      onDelete: 'restrict',
    },
  ],
});

async function count(door: RelationDoor, path: string): Promise<number> {
  const reply = await door.get(`${path}?limit=1`, { prefer: 'count=exact' });
  return Number(reply.headers.get('x-total-count'));
}

async function withAuthors(door: RelationDoor): Promise<void> {
  await door.send('POST', '/authors', [{ name: 'a' }, { name: 'b' }]);
}

for (const [engine, open] of Object.entries(relationDoors)) {
  describe(`imports of relations on ${engine}`, () => {
    test('a dry run refuses the lines that the import then refuses, for the same reasons, and stores none', async () => {
      await using door = await open([...LIBRARY, STAFF]);
      await withAuthors(door);
      await door.send('POST', '/books', { title: 'there', author_id: 1 });
      const lines = {
        '/books': [
          '{"title":"first","author_id":1}',
          '{"titel":"x","price":"-1","author_id":1}',
          '{"title":',
          '{"title":"there","author_id":1}',
          '{"title":"first","author_id":1}',
          '{"title":"there","author_id":9}',
          '{"title":"last","author_id":2,"price":"1.5"}',
        ],
        // A line may refer to an earlier one.
        '/staff': [
          '{"id":7,"name":"a"}',
          '{"name":"b","boss_id":7}',
          '{"name":"a"}',
          '{"name":"c","boss_id":70}',
        ],
      };
      for (const [path, own] of Object.entries(lines)) {
        const before = await count(door, path);
        const keyed = { ...NDJSON, 'idempotency-key': 'once' };
        const dry = linesOf(await importTo(door.url, keyed, own.join('\n'), `${path}?dryRun=true`));
        assert.equal(await count(door, path), before, path);
        const report = linesOf(await importTo(door.url, keyed, own.join('\n'), path));
        assert.deepEqual(
          dry,
          report.filter(({ key }) => key === undefined),
          path,
        );
        const [created, refused] = [Number(dry.at(-1)?.created), Number(dry.at(-1)?.refused)];
        assert.deepEqual([created + refused, refused], [own.length, dry.length - 1], path);
      }
      const wrong = await door.send('POST', '/books?dryRun=1', '{}', NDJSON);
      assert.equal(wrong.status, 400);
      const csv = await importTo(door.url, CSV, 'title,author_id\nx,1\ny,9\n', '/books?dryRun=true');
      assert.deepEqual(
        linesOf(csv).map(({ line, code, created }) => [line, code, created]),
        [
          [3, 'REFERENCE_MISSING', undefined],
          [undefined, undefined, 1],
        ],
      );
    });

    test('each line is stored or refused alone, with all of its faults', async () => {
      await using door = await open(LIBRARY);
      await withAuthors(door);
      await door.send('POST', '/books', { title: 'there', author_id: 1 });
      const lines = [
        '{"title":"first","author_id":1}',
        '{"titel":"x","price":"-1","author_id":1}',
        '{"title":',
        '{"title":"there","author_id":1}',
        '{"title":"first","author_id":1}',
        '{"title":"there","author_id":9}',
        '',
        '{"id":77,"title":"last","author_id":2,"price":"1.5"}',
      ];
      const report = linesOf(await importTo(door.url, NDJSON, lines.join('\n'), '/books'));
      assert.deepEqual(
        report.map(({ line, key, code }) => [line, key === undefined ? code : 'stored']),
        [
          [1, 'stored'],
          [2, 'INVALID_ROW'],
          [3, 'MALFORMED_JSON'],
          [4, 'TAKEN'],
          [5, 'TAKEN'],
          [6, 'REFERENCE_MISSING'],
          [8, 'stored'],
          [undefined, undefined],
        ],
      );
      assert.deepEqual(report.at(-1), { created: 2, refused: 5 });
      assert.deepEqual(report[1], {
        line: 2,
        code: 'INVALID_ROW',
        reason:
          'books has no column "titel"; did you mean title?; "title" is missing; "price" must be at least 0',
        errors: [
          { detail: 'books has no column "titel"; did you mean title?', pointer: '#/titel' },
          { detail: '"title" is missing', pointer: '#/title' },
          { detail: '"price" must be at least 0', pointer: '#/price' },
        ],
      });
      assert.deepEqual(report[5], {
        line: 6,
        code: 'REFERENCE_MISSING',
        reason: 'authors has no row with this key (author_id)',
        errors: [{ detail: 'authors has no row with this key (author_id)', pointer: '#/author_id' }],
      });
      // The number of an export is not used. PostgreSQL leaves out the numbers of refused rows.
      const { id } = (report[6]?.key ?? {}) as { readonly id?: number };
      assert.ok(id !== 77);
      assert.deepEqual((await door.get(`/books/${id}`)).body, {
        id,
        title: 'last',
        pages: null,
        price: '1.50',
        author_id: 2,
        published: null,
      });
    });

    test('in one transaction a refused line keeps all from being stored, and all refused lines are named', async () => {
      await using door = await open(LIBRARY);
      await withAuthors(door);
      const rows = Array.from({ length: 5_000 }, (_, i) => ({ title: `t${i}`, author_id: 1 + (i % 2) }));
      const whole = { ...NDJSON, prefer: 'transaction=all, return=minimal' };
      const bad = rows.with(7, { title: 't7', author_id: 9 }).with(4_500, { title: 't0', author_id: 1 });
      const refused = await door.send('POST', '/books', ndjson(bad), whole);
      assert.deepEqual([refused.status, refused.headers.get('x-error-code')], [409, 'REFERENCE_MISSING']);
      assert.deepEqual(
        linesOf(refused.text).map(({ line, code, created }) => [line, code ?? created]),
        [
          [8, 'REFERENCE_MISSING'],
          [4_501, 'TAKEN'],
          [undefined, 0],
        ],
      );
      assert.equal(await count(door, '/books'), 0);
      const stored = await door.send('POST', '/books', ndjson(rows), whole);
      assert.deepEqual([stored.status, linesOf(stored.text)], [200, [{ created: 5_000, refused: 0 }]]);
      assert.equal(await count(door, '/books'), 5_000);
      const invalid = await door.send('POST', '/books', ndjson([{ title: 'x', author_id: 1 }, {}]), whole);
      assert.deepEqual([invalid.status, invalid.headers.get('x-error-code')], [400, 'INVALID_ROW']);
      const many = ndjson(Array.from({ length: 33_335 }, () => ({ book_id: 1, reader: 'r' })));
      const large = await door.send('POST', '/loans', many, whole);
      assert.deepEqual([large.status, large.headers.get('x-error-code')], [413, 'IMPORT_TOO_LARGE']);
      assert.match(large.text, /One transaction takes at most 33,334 rows of loans/);
    });

    test('in CSV an empty field is null or the default, and with quotes an empty text', async () => {
      await using door = await open([SPECIMENS]);
      const csv = [
        'code,id,kind,whole,flag,data,raw,day',
        '"",5,beta,-7,true,"{""a"":[1,null]}",aGk=,2024-02-29',
        'one,,,,,,,',
        'two,,"",1.5,maybe,{,""',
        'three,,,,,null,"",',
      ].join('\r\n');
      const report = linesOf(await importTo(door.url, CSV, csv, '/specimens'));
      assert.deepEqual(
        report.map(({ line, key, code }) => [line, key ?? code]),
        [
          [2, { id: 5 }],
          [3, { id: 6 }],
          [4, 'MALFORMED_CSV'],
          [5, { id: 7 }],
          [undefined, undefined],
        ],
      );
      const shown = async (id: number) => {
        const { code, kind, whole, flag, data, raw, day } = (await door.get(`/specimens/${id}`)).body;
        return [code, kind, whole, flag, data, raw, day];
      };
      assert.deepEqual(await shown(6), ['one', 'alpha', null, false, null, null, null]);
      assert.deepEqual(await shown(5), ['', 'beta', -7, true, { a: [1, null] }, 'aGk=', '2024-02-29']);
      assert.deepEqual(await shown(7), ['three', 'alpha', null, false, null, '', null]);
      for (const [header, message] of [
        ['code,cod\n', /specimens has no column "cod"; did you mean code\?/],
        ['code,code\n', /"code" occurs twice/],
        ['kind\n', /does not name the column "code"/],
      ] as const) {
        const refused = await door.send('POST', '/specimens', header, CSV);
        assert.deepEqual([refused.status, refused.body.code], [400, 'INVALID_IMPORT']);
        assert.match(refused.body.detail, message);
      }
    });

    test('a line may refer to an earlier one, which gives its number', async () => {
      await using door = await open([STAFF]);
      const rows = [
        { id: 7, name: 'self', boss_id: 7 },
        { id: 8, name: 'under', boss_id: 7 },
        { id: 9, name: 'early', boss_id: 10 },
        { id: 10, name: 'late' },
        { name: 'assigned', boss_id: 10 },
        { id: 11, name: 'self' },
        { id: 12, name: 'lost', boss_id: 13 },
      ];
      const report = linesOf(await importTo(door.url, NDJSON, ndjson(rows), '/staff'));
      assert.deepEqual(
        report.slice(0, -1).map(({ key, code }) => key ?? code),
        [{ id: 7 }, { id: 8 }, 'REFERENCE_MISSING', { id: 10 }, { id: 11 }, 'TAKEN', 'REFERENCE_MISSING'],
      );
      // The next number is behind those that were given.
      assert.equal((await door.send('POST', '/staff', { name: 'next' })).body.id, 12);
    });

    test('an import with a key continues where it stopped, and each relation has its own keys', async () => {
      await using door = await open(LIBRARY);
      await withAuthors(door);
      const rows = Array.from({ length: 30 }, (_, i) => ({ title: `t${i}`, author_id: 1 }));
      const headers = { ...NDJSON, 'idempotency-key': 'k' };
      const send = async (path: string, all: readonly unknown[]) => {
        const reply = await door.send('POST', path, ndjson(all), headers);
        return reply.status === 200 ? linesOf(reply.text).at(-1) : reply.body.code;
      };
      assert.deepEqual(await send('/books', rows.slice(0, 12)), { created: 12, refused: 0 });
      assert.deepEqual(await send('/books', rows), { created: 18, refused: 0, skipped: 12 });
      assert.equal(await send('/books', rows.with(3, { title: 'other', author_id: 1 })), 'IMPORT_KEY_REUSED');
      assert.deepEqual(await send('/loans', [{ book_id: 1, reader: 'ann' }]), { created: 1, refused: 0 });
      assert.equal(await count(door, '/books'), 30);
    });

    test('lines are stored while the client still sends, and stay if it leaves', async () => {
      await using door = await open(LIBRARY);
      await withAuthors(door);
      await door.send('POST', '/books', { title: 't', author_id: 1 });
      const { request, reply } = openImport(door.url, NDJSON, '/loans');
      const loans = Array.from({ length: 50 }, (_, i) => ({ book_id: 1, reader: `r${i}` }));
      request.write(ndjson(loans));
      const [first] = await once((await reply).setEncoding('utf8'), 'data');
      assert.deepEqual(linesOf(String(first))[0], { line: 1, key: { book_id: 1, reader: 'r0' } });
      request.write('{"book_id":1,"reader":"half"}');
      request.destroy();
      const whole = openImport(door.url, { ...NDJSON, prefer: 'transaction=all' }, '/loans');
      whole.request.write(ndjson([{ book_id: 1, reader: 'whole' }]));
      await once(whole.request, 'socket');
      whole.request.destroy();
      await waitFor('the imports to end', async () => (await count(door, '/loans')) === 50 || undefined);
    });

    test('wrong bytes and long lines cost their line alone, and a wrong body is refused', async () => {
      await using door = await open(LIBRARY, { maxImportBytes: 3_000_000 });
      await withAuthors(door);
      const lines = Buffer.concat([
        Buffer.from('{"name":"'),
        Buffer.from([0xff, 0xc3]),
        Buffer.from(`"}\n{"name":"${'x'.repeat(1024 * 1024)}"}\n{"name":"nul\\u0000"}\n{"name":"é"}\n`),
      ]);
      const report = linesOf(await importTo(door.url, NDJSON, lines, '/authors'));
      assert.deepEqual(
        report.map(({ line, code, key }) => [line, code ?? key]),
        [
          [1, 'INVALID_UTF8'],
          [2, 'LINE_TOO_LONG'],
          [3, 'INVALID_ROW'],
          [4, { id: 3 }],
          [undefined, undefined],
        ],
      );
      const cross = { ...NDJSON, 'sec-fetch-site': 'cross-site' };
      assert.equal((await door.send('POST', '/authors', '{}', cross)).status, 403);
      const large = await door.send('POST', '/authors', 'x'.repeat(3_000_001), NDJSON);
      assert.deepEqual([large.status, large.body.code], [413, 'IMPORT_TOO_LARGE']);
      const array = { 'content-type': 'application/json', prefer: 'transaction=line' };
      const reply = await door.send('POST', '/authors', [{ name: 'c' }, { name: 7 }], array);
      assert.deepEqual(
        linesOf(reply.text).map(({ line, code, key }) => [line, code ?? key]),
        [
          [1, { id: 4 }],
          [2, 'INVALID_ROW'],
          [undefined, undefined],
        ],
      );
    });

    test('random rows are stored and refused as the model does, one by one', async () => {
      await fc.assert(
        fc.asyncProperty(declarations, fc.gen(), async ({ relations }, draw) => {
          await using door = await open(relations);
          const model = new Model(relations);
          for (const each of [...relations, ...relations]) {
            const rows = Array.from({ length: draw(fc.nat, { max: 12 }) }, () =>
              withReferences(each, model, draw(bodies, each), {
                number: () => draw(fc.nat),
                missing: (type) => draw(jsonOf, type),
              }),
            );
            const send = () => door.send('POST', `/${each.name}`, ndjson(rows), NDJSON);
            let reply = await send();
            // The machine may be too busy to begin it.
            while (reply.status === 503) reply = await send();
            assert.equal(reply.status, 200, reply.text);
            const report = linesOf(reply.text);
            for (const [i, row] of rows.entries()) {
              const { key, code, errors } = report[i] as { key?: Body; code?: string; errors?: unknown };
              const serial = key?.[each.key[0] ?? ''];
              const isSerial = each.columns.some(({ type }) => type.kind === 'serial');
              // A refused row would have had a number of its own.
              const number = isSerial ? Number(serial ?? -1 - i) : undefined;
              const outcome = model.create(each.name, row, number);
              const said = JSON.stringify([each, row, report[i], outcome], (_, value) =>
                typeof value === 'bigint' ? String(value) : value,
              );
              assert.equal(key !== undefined, outcome.is === 'done', said);
              if (outcome.is !== 'refused') continue;
              assert.ok(code === 'TAKEN' || code === 'REFERENCE_MISSING', said);
              const pointers = outcome.conflicts.flatMap((conflict) => {
                if (conflict.is === 'taken') return conflict.columns;
                if (conflict.is === 'referenced') return [];
                return each.references.find(({ name }) => name === conflict.reference)?.columns ?? [];
              });
              assert.deepEqual(
                (errors as { pointer: string }[]).map(({ pointer }) => pointer).toSorted(),
                pointers.map((name) => `#/${name}`).toSorted(),
                said,
              );
            }
          }
        }),
        { numRuns: RUNS[engine] ?? 6 },
      );
    });
  });
}

interface Draw {
  number(): number;
  /** A value that hardly any row has. */
  missing(type: ColumnType): unknown;
}

/** A row with keys of rows that are there in the columns of its references, or one that is not. */
function withReferences({ references, columns }: Relation, model: Model, body: Body, draw: Draw): Body {
  const made: Record<string, unknown> = { ...body };
  for (const { to, columns: own, targetColumns } of references) {
    const rows = model.rows(to);
    const target =
      rows.length === 0 || draw.number() % 5 === 0 ? undefined : rows[draw.number() % rows.length];
    for (const [i, name] of own.entries()) {
      const { type, nullable } = columns.find((each) => each.name === name) as Column;
      const value = target?.[targetColumns[i] ?? ''];
      if (value !== undefined && value !== null) made[name] = JSON.parse(codecOf(type).format(value));
      else if (nullable) made[name] = null;
      else made[name] = draw.missing(type);
    }
  }
  return made;
}
