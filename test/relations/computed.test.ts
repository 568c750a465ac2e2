import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { RelationData, RelationsData } from '../../src/config/schema/declaration.ts';
import { readRelations } from '../../src/config/schema/relations.ts';
import { codecOf } from '../../src/relations/codecs.ts';
import { computedValue, expressionSql, withComputed } from '../../src/relations/hooks/computed.ts';
import type { Relation, Value } from '../../src/relations/relation.ts';
import { rowSchemas } from '../../src/relations/rows/row-schemas.ts';
import { schemaStatements } from '../../src/sql/schema/ddl.ts';
import { dropUndeclared } from '../../src/sql/schema/drop.ts';
import { migrateRelations, planRelations, prepareRelations } from '../../src/sql/schema/migrate.ts';
import { postgresSession } from '../../src/sql/schema/postgres-session.ts';
import { sqliteSession } from '../../src/sql/schema/sqlite-session.ts';
import { follow } from '../rest/support/rest-door.ts';
import { rounds } from '../support/proof-settings.ts';
import { bareEngines } from '../support/relations/engines.ts';
import { evaluated, expressions } from '../support/relations/expressions.ts';
import { jsonOf } from '../support/relations/random-columns.ts';
import { relationDoors } from '../support/relations/relation-door.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const columns = {
  first: { type: 'text', max: 20 },
  last: { type: 'text', max: 20, fold: true, nullable: true },
  price: { type: 'decimal', precision: 8, scale: 2, min: '0' },
  quantity: { type: 'integer', min: 0, max: 10_000 },
  big: { type: 'bigint', min: '-4000000000000000000', max: '4000000000000000000', default: '0' },
} as const satisfies RelationData['columns'];

const computed = {
  full_name: { concat: ['first', ' ', { coalesce: ['last', ''] }] },
  total: { multiply: ['price', 'quantity'] },
  taxed: { multiply: ['price', '1.19'] },
  twice: { add: ['big', 'big'] },
  handle: { lower: 'first' },
  size: { length: { concat: ['first', 'quantity'] } },
  maybe: { concat: ['first', 'last'] },
} as const satisfies RelationData['computed'];

function problemsOf(more: object, over: RelationData['columns'] = columns): readonly string[] {
  const problems: string[] = [];
  readRelations({ value: { people: { one: 'person', columns: over, ...more } }, path: 'c' }, problems);
  return problems.map((problem) => problem.replace('c.people.', ''));
}

function read(data: RelationsData): readonly Relation[] {
  const problems: string[] = [];
  const relations = readRelations({ value: data, path: 'c' }, problems);
  assert.deepEqual(problems, []);
  return relations;
}

const people = (more: object = {}) =>
  read({ people: { one: 'person', columns, computed, ...more } as RelationData });

test('an expression that is unknown, or cannot be exact, is refused with its place', () => {
  const refusals: readonly (readonly [expression: unknown, problem: RegExp])[] = [
    [
      { concat: ['frist', 'last'] },
      /^computed\.x\.concat\[0\] "frist" is not a column; did you mean first\?; for the text write/,
    ],
    [
      { conct: ['first', 'last'] },
      /^computed\.x\.conct is not a function of computed columns; did you mean concat\?/,
    ],
    [{ sum: 'lines' }, /^computed\.x\.sum concerns rows of other relations/],
    [{ concat: ['id', 'first'] }, /"id" is numbered when the row is stored/],
    [{ concat: ['price', 'first'] }, /takes no decimal, of which engines make different texts/],
    [{ add: ['quantity', 1.5] }, /must be a whole number, or a text such as "1\.19"/],
    [{ add: ['quantity', 'y'] }, /"y" is not a column/],
    [{ add: ['quantity', 'x y'] }, /must be a number of at most 18 digits/],
    [{ multiply: ['big', 'quantity'] }, /^computed\.x\.multiply may be beyond 64 bits; give what it reads/],
    [{ multiply: ['price', 'price', 'price'] }, /may be beyond 18 digits/],
    [{ lower: 'quantity' }, /^computed\.x\.lower takes a text/],
    [{ lower: ['first', 'last'] }, /takes one part/],
    [{ concat: ['first'] }, /takes two parts or more/],
    [{ coalesce: ['first', 'quantity'] }, /takes texts alone|must be a number/],
    [{ concat: [' ', { value: 'y' }] }, /^computed\.x\.concat must read a column/],
    [{ concat: ['full_name', 'first'] }, /"full_name" is computed itself; write its expression instead/],
    [{ coalesce: ['', 'last', 'first'] }, /coalesce has parts behind a constant/],
    [{ upper: { value: 'x' } }, /upper must read a column/],
    ['first', /^computed\.x must be an expression/],
    [{}, /must be an expression/],
  ];
  for (const [expression, problem] of refusals) {
    const found = problemsOf({ computed: { ...computed, x: expression } });
    assert.equal(found.length, 1, `${JSON.stringify(expression)}: ${found.join('; ')}`);
    assert.match(found[0] ?? '', problem);
  }
  const wide = { a: { type: 'integer' }, d: { type: 'number' } } as const;
  assert.match(problemsOf({ computed: { x: { add: ['a', 1] } } }, wide)[0] ?? '', /may be beyond 2\^53/);
  assert.match(
    problemsOf({ computed: { x: { add: ['d', 1] } } }, wide)[0] ?? '',
    /takes no number, which is not exact/,
  );
});

test('a computed column is in no key and no unique, and has a name of its own', () => {
  assert.deepEqual(problemsOf({ computed, unique: [['handle']] }), [
    'unique[0] "handle" is computed; it goes into indexes only',
  ]);
  assert.match(problemsOf({ computed, key: ['handle'] })[0] ?? '', /^key "handle" is computed/);
  assert.match(problemsOf({ computed: { first: { lower: 'last' } } })[0] ?? '', /has the name "first"/);
  assert.match(
    problemsOf({ computed: { limit: { lower: 'last' } } })[0] ?? '',
    /^computed\.limit has the name of a parameter/,
  );
  assert.match(problemsOf({ computed, indexes: [['handel']] })[0] ?? '', /did you mean handle\?/);
});

test('a computed column is hidden from those from whom what it reads is hidden', () => {
  const staff = { type: 'text', max: 5, read: { scope: 'staff' } } as const;
  const [relation] = read({
    notes: { columns: { a: staff, b: { type: 'text', max: 5 } }, computed: { c: { concat: ['a', 'b'] } } },
  });
  assert.deepEqual(relation?.columns.at(-1)?.rules?.read, [{ scope: 'staff' }]);
  const other = { ...staff, read: { scope: 'boss' } } as const;
  assert.match(
    problemsOf({ computed: { c: { concat: ['a', 'b'] } } }, { a: staff, b: other })[0] ?? '',
    /different `read`/,
  );
});

/** Columns whose numbers are small enough to calculate with. */
const [RANDOM] = read({
  rows: {
    columns: {
      c0: { type: 'integer', min: -100_000, max: 100_000, nullable: true },
      c1: { type: 'bigint', min: '-9000000000', max: '9000000000' },
      c2: { type: 'decimal', precision: 5, scale: 3, nullable: true },
      c3: { type: 'decimal', precision: 4, scale: 0 },
      c4: { type: 'text', max: 12 },
      c5: { type: 'text', max: 12, fold: true, nullable: true },
      c6: { type: 'enum', values: ['Alpha', 'be ta'] },
      c7: { type: 'uuid', nullable: true },
    },
  },
}) as [Relation];

const names = RANDOM.columns.map(({ name }) => name).slice(1);

/** A relation with random computed columns, as far as a declaration takes them. */
const computedRelations = fc.array(expressions(names), { minLength: 24, maxLength: 40 }).map((all) => {
  const data = Object.fromEntries(
    RANDOM.columns.slice(1).map(({ name, type: { kind, ...options }, nullable }) => [
      name,
      {
        type: kind,
        nullable,
        ...JSON.parse(
          JSON.stringify(options, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value)),
        ),
      },
    ]),
  ) as RelationData['columns'];
  const possible = all.flatMap((expression, n) => {
    const problems: string[] = [];
    readRelations(
      { value: { rows: { columns: data, computed: { [`e${n}`]: expression } } }, path: '' },
      problems,
    );
    return problems.length === 0 ? [[`e${n}`, expression] as const] : [];
  });
  return read({ rows: { columns: data, computed: Object.fromEntries(possible) } })[0] as Relation;
});

const randomRows = fc.array(
  fc.tuple(
    ...RANDOM.columns.slice(1).map((column): fc.Arbitrary<Value> => {
      const value = jsonOf(column.type).map((json) => {
        const parsed = codecOf(column.type).parse(json);
        return 'value' in parsed ? parsed.value : null;
      });
      return column.nullable ? fc.option(value, { nil: null, freq: 5 }) : value;
    }),
  ),
  { minLength: 1, maxLength: 8 },
);

for (const [engine, open] of Object.entries(bareEngines)) {
  test(`random expressions are on ${engine} what they are in JavaScript`, async () => {
    let seen = 0;
    await fc.assert(
      fc.asyncProperty(computedRelations, randomRows, async (relation, rows) => {
        await using db = await open();
        for (const sql of schemaStatements(db.engine, [relation]))
          await db.run(sql).catch((error: unknown) => {
            throw new Error(sql, { cause: error });
          });
        const own = relation.columns.filter(({ name, computed }) => name !== 'id' && computed === undefined);
        const added = relation.columns.filter(({ computed }) => computed !== undefined);
        const literal = (value: unknown) =>
          value === null
            ? 'NULL'
            : typeof value === 'string'
              ? `'${value.replaceAll("'", "''")}'`
              : String(value);
        for (const row of rows) {
          const values = own.map(({ type }, i) => literal(codecOf(type)[db.engine].bind(row[i] ?? null)));
          await db.run(`INSERT INTO rows (${own.map(({ name }) => name).join()}) VALUES (${values.join()})`);
        }
        if (added.length === 0) return;
        const selected = added.map(({ name, type }) => codecOf(type)[db.engine].select(`"${name}"`));
        const stored = await db.rows(`SELECT ${selected.join()} FROM rows ORDER BY id`);
        for (const [nth, row] of rows.entries()) {
          const byName = Object.fromEntries(own.map(({ name }, i) => [name, row[i] ?? null]));
          for (const [i, { name, type, computed }] of added.entries()) {
            assert.ok(computed !== undefined);
            const found = codecOf(type)[db.engine].read(stored[nth]?.[i]);
            const context = `${name}: ${expressionSql(db.engine, computed)} of ${String(Object.values(byName))}`;
            assert.deepEqual(found, evaluated(computed, byName), context);
            assert.deepEqual(
              computedValue(computed, (each) => byName[each] ?? null),
              found,
              context,
            );
            if (found !== null)
              assert.ok('value' in codecOf(type).parse(JSON.parse(codecOf(type).format(found))), context);
            seen++;
          }
        }
      }),
      { numRuns: engine === 'sqlite' ? rounds(40) : rounds(30) },
    );
    assert.ok(seen > 0, 'no value was compared');
  });
}

const ANN = { first: 'Ann', last: 'Lee', price: '12.50', quantity: 3, big: '4000000000000000000' };
const SHOWN = {
  id: 1,
  ...ANN,
  full_name: 'Ann Lee',
  total: '37.50',
  taxed: '14.8750',
  twice: '8000000000000000000',
  handle: 'ann',
  size: 4,
  maybe: 'AnnLee',
};

for (const [engine, open] of Object.entries(relationDoors)) {
  describe(`computed columns on ${engine}`, () => {
    test('rows have them, after every kind of write, in lists, filters, orders, events and exports', async () => {
      await using door = await open(people({ indexes: [['handle'], ['total']] }));
      await using stream = await follow(door.url, {}, '', '/people');
      assert.deepEqual((await door.send('POST', '/people', ANN)).body, SHOWN);
      const others = [
        { ...ANN, first: 'bob', last: null, quantity: 0, big: '1' },
        { ...ANN, first: 'Cy', last: 'X' },
      ];
      const created = await door.send('POST', '/people', others);
      assert.deepEqual(
        created.body.map((row: { full_name: string; maybe: null }) => [row.full_name, row.maybe]),
        [
          ['bob ', null],
          ['Cy X', 'CyX'],
        ],
      );
      const changed = await door.send('PATCH', '/people/2', { quantity: 2 });
      assert.equal(changed.body.total, '25.00');
      let event = await stream.next();
      while (event?.data === '') event = await stream.next();
      assert.equal(JSON.parse(event?.data ?? '{}').row.full_name, 'Ann Lee');
      const list = await door.get('/people?total:gte=25&sort=-handle&fields=full_name,total');
      assert.deepEqual(list.body, [
        { full_name: 'Cy X', total: '37.50' },
        { full_name: 'bob ', total: '25.00' },
        { full_name: 'Ann Lee', total: '37.50' },
      ]);
      assert.deepEqual((await door.get('/people?handle=ann&fields=id')).body, [{ id: 1 }]);
      assert.deepEqual((await door.get('/people?aggregate=sum(total)')).body, [{ sum: { total: '100.00' } }]);
      const put = await door.send('PUT', '/people/3', { ...ANN, first: 'Di' });
      assert.equal(put.body.full_name, 'Di Lee', put.text);
      const exported = await (
        await fetch(`${door.url}/people`, { headers: { accept: 'application/x-ndjson' } })
      ).text();
      const imported = await door.send('POST', '/people', exported, {
        'content-type': 'application/x-ndjson',
      });
      assert.match(imported.text, /"created":3,"refused":0/);
      assert.deepEqual((await door.get('/people/4')).body, { ...SHOWN, id: 4 });
    });

    test('OpenAPI says that they are read only, and new rows and changes have none', async () => {
      await using door = await open(people());
      const [relation] = people();
      assert.ok(relation !== undefined);
      const { schemas, example } = rowSchemas(new Map([[relation.name, relation]]), relation);
      const members = (name: string) => JSON.stringify(schemas[name]);
      assert.match(members('people.Fields'), /"total":\{.*?"readOnly":true\},"taxed"/);
      for (const name of ['people.NewRow', 'people.Patch'])
        assert.doesNotMatch(members(name), /total|full_name/);
      assert.equal((await door.send('POST', '/people', example)).status, 201);
      assert.match(members('people.Fields'), /"full_name":"first last"/);
    });

    test('writes that name them are refused with their place', async () => {
      await using door = await open(people());
      await door.send('POST', '/people', ANN);
      const requests: readonly (readonly [string, string, unknown, string])[] = [
        ['POST', '/people', { ...ANN, full_name: 'x' }, '#/full_name'],
        ['POST', '/people', [ANN, { ...ANN, total: '1.00' }], '#/1/total'],
        ['PATCH', '/people/1', { handle: 'x' }, '#/handle'],
        ['PUT', '/people/1', { ...ANN, size: 1 }, '#/size'],
        [
          'POST',
          '/_batch',
          { writes: [{ method: 'POST', path: '/people', body: { ...ANN, twice: '1' } }] },
          '#/writes/0/body/twice',
        ],
      ];
      for (const [method, path, body, pointer] of requests) {
        const reply = await door.send(method, path, body);
        assert.deepEqual([reply.status, reply.body.code], [400, 'INVALID_ROW'], reply.text);
        assert.equal(reply.body.errors[0].pointer, pointer);
        assert.match(reply.body.errors[0].detail, /is computed from other columns; leave it out/);
      }
    });
  });
}

for (const [engine, open] of Object.entries(bareEngines)) {
  test(`a migration adds, changes, keeps and drops computed columns on ${engine}`, async () => {
    await using db = await open();
    const session = db.engine === 'sqlite' ? sqliteSession(db.db) : postgresSession(db.db);
    const name = { type: 'text', max: 20 } as const;
    const cost = { type: 'decimal', precision: 6, scale: 2 } as const;
    const declared = (data: object) => read({ items: { columns: { name, cost }, ...data } as RelationData });
    const values = async (column: string) =>
      (await db.rows(`SELECT ${column} FROM items ORDER BY id`)).map(([each]) => String(each));
    const classes = async (relations: readonly Relation[]) => {
      const { steps } = await planRelations(session, relations);
      return [...new Set(steps.map((step) => step.class))];
    };
    const rewrite = (relations: readonly Relation[]) =>
      migrateRelations(session, relations, { rewrite: true });
    await prepareRelations(session, declared({}), 'additive');
    await db.run(
      `INSERT INTO items (name, cost) VALUES ('Pen', ${db.engine === 'sqlite' ? 250 : '2.5'}), ('Ink', 0)`,
    );

    const added = declared({
      computed: { tag: { lower: 'name' }, half: { multiply: ['cost', '0.5'] } },
      indexes: [['tag']],
    });
    assert.ok((await classes(added)).includes('rewriting'));
    await assert.rejects(async () => prepareRelations(session, added, 'additive'), /migrate/);
    await rewrite(added);
    assert.deepEqual(await values('tag'), ['pen', 'ink']);
    assert.deepEqual((await planRelations(session, added)).steps, [], 'the catalogue agrees');

    const changed = declared({
      computed: { tag: { upper: 'name' }, half: { multiply: ['cost', '0.5'] } },
      indexes: [['tag']],
    });
    assert.ok((await classes(changed)).includes('rewriting'));
    await rewrite(changed);
    assert.deepEqual(await values('tag'), ['PEN', 'INK']);
    assert.deepEqual((await planRelations(session, changed)).steps, []);

    // What it reads gets another name and more digits.
    const moved = read({
      items: {
        columns: { title: { ...name, max: 30, was: 'name' }, cost: { ...cost, precision: 8 } },
        computed: { tag: { upper: 'title' }, half: { multiply: ['cost', '0.5'] } },
        indexes: [['tag']],
      },
    });
    await rewrite(moved);
    assert.deepEqual(await values('tag'), ['PEN', 'INK']);
    assert.deepEqual((await planRelations(session, moved)).steps, []);
    await db.run("UPDATE items SET title = 'Cap' WHERE id = 1");
    assert.deepEqual(await values('tag'), ['CAP', 'INK']);

    // A column that is no longer computed keeps its values.
    const kept = read({
      items: {
        columns: {
          title: { ...name, max: 30 },
          cost: { ...cost, precision: 8 },
          tag: { ...name, max: 30, nullable: true },
        },
        computed: { half: { multiply: ['cost', '0.5'] } },
      },
    });
    await rewrite(kept);
    await db.run("UPDATE items SET tag = 'own' WHERE id = 1");
    assert.deepEqual(await values('tag'), ['own', 'INK']);
    assert.deepEqual((await planRelations(session, kept)).steps, []);
    const over = read({
      items: {
        columns: { title: { ...name, max: 30 }, cost: { ...cost, precision: 8 } },
        computed: { tag: { upper: 'title' } },
      },
    });
    await assert.rejects(
      async () => rewrite(over),
      /tag has stored values; leave it out of the declaration, drop it/,
    );

    await using folder = await temporaryFolder();
    const bare = read({ items: { columns: { title: { ...name, max: 30 } } } });
    await rewrite(bare);
    await assert.rejects(
      async () => dropUndeclared(session, bare, ['items.cost'], folder.path),
      /items\.cost cannot be dropped, because items\.half is computed from it; drop that first/,
    );
    await dropUndeclared(session, bare, ['items.half'], folder.path);
    await dropUndeclared(session, bare, ['items.cost', 'items.tag'], folder.path);
    assert.deepEqual(await values('title'), ['Cap', 'Ink']);
  });
}

test('values that a transaction decides leave computed columns to the engine', () => {
  const [relation] = people();
  assert.ok(relation !== undefined);
  const row = withComputed(relation, [null, 'A', null, '1.00', 2, 3n]);
  assert.deepEqual(row.slice(6), ['A ', '2.00', '1.1900', 6n, 'a', 2, null]);
});
