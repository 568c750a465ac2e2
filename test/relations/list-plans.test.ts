import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Relation, Value } from '../../src/relations/relation.ts';
import { type RowListShape, readRowList } from '../../src/relations/rows/row-lists.ts';
import { type BoundText, POSTGRES_ROWS, SQLITE_ROWS } from '../../src/sql/dialects/row-dialects.ts';
import { statementTexts } from '../../src/sql/relations/row-engine.ts';
import { RowListSql } from '../../src/sql/relations/row-lists.ts';
import { RowSql } from '../../src/sql/relations/row-sql.ts';
import { schemaStatements } from '../../src/sql/schema/ddl.ts';
import { type BareDatabase, bareEngines } from '../support/relations/engines.ts';
import { column, relation, text } from '../support/relations/relations.ts';

const LIMIT = 20;
const ROWS = 20_000;
const integer = { kind: 'integer' } as const;

const PARENTS = relation('parents', {
  columns: [column('id', { kind: 'serial', open: true }), column('name', text(20))],
  unique: [['name']],
  inverses: [{ name: 'events', relation: 'events', reference: 'parent' }],
});
const EVENTS = relation('events', {
  columns: [
    column('id', { kind: 'serial', open: true }),
    column('parent_id', integer),
    column('at', integer, { nullable: true }),
    column('title', text(40, true)),
    column('note', text(40)),
  ],
  indexes: [['at'], ['title'], ['parent_id', 'at']],
  references: [
    {
      name: 'parent',
      to: 'parents',
      columns: ['parent_id'],
      targetColumns: ['id'],
      inverse: 'events',
      onDelete: 'cascade',
    },
  ],
});
/** The same with a key of two columns. */
const PLACES = relation('places', {
  columns: [
    column('country', text(2)),
    column('code', integer),
    column('size', integer, { nullable: true }),
    column('kind', integer),
  ],
  key: ['country', 'code'],
  indexes: [['size'], ['kind']],
});

/** Lists that an index yields in order. */
const WALKS: readonly (readonly [Relation, string])[] = [
  [EVENTS, ''],
  [EVENTS, 'sort=-id'],
  [EVENTS, 'parent_id=3'],
  [EVENTS, 'parent_id=3&sort=-id'],
  [EVENTS, 'sort=at'],
  [EVENTS, 'sort=-at'],
  [EVENTS, 'at:null=true'],
  [EVENTS, 'at:gte=5000&sort=at'],
  [EVENTS, 'sort=title'],
  [EVENTS, 'title:prefix=T&sort=-title'],
  [EVENTS, 'parent_id=3&sort=at'],
  [EVENTS, 'parent_id=3&sort=-at'],
  [PLACES, ''],
  [PLACES, 'country=c3'],
  [PLACES, 'sort=-country'],
  [PLACES, 'kind=3'],
  [PLACES, 'sort=size'],
  [PLACES, 'sort=-size'],
];
/** Lists of few rows, which are sorted. */
const SEEKS: readonly string[] = [
  'parent.name=parent 500&sort=parent.name,-note',
  'parent_id=500&sort=note',
  'parent.name=parent 500&note:contains=7',
];

/** Counts that look at all rows, but not at another relation for each. */
const COUNTS: readonly string[] = [
  'parent.name:not=parent 500',
  'where={"not":{"parent":{"name":{"prefix":"parent 5"}}}}',
];

function fillText(engine: string): string {
  const n =
    engine === 'sqlite'
      ? `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${ROWS})`
      : `WITH n AS (SELECT generate_series(1, ${ROWS}) AS i)`;
  return `
    ${n} INSERT INTO parents (id, name, "_version") SELECT i, 'parent ' || i, 1 FROM n WHERE i <= 500;
    ${n} INSERT INTO events (id, parent_id, at, title, note, "_version")
      SELECT i, CASE WHEN i % 1000 = 0 THEN 500 ELSE i % 4 + 1 END, CASE WHEN i % 3 = 0 THEN NULL ELSE i END,
        't' || (i % 50), 'n' || (i % 900), 1 FROM n;
    ${n} INSERT INTO places (country, code, size, kind, "_version")
      SELECT 'c' || (i % 4), i, CASE WHEN i % 3 = 0 THEN NULL ELSE i % 900 END, i % 5, 1 FROM n;
    ANALYZE`;
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

/** How many rows a statement reads or sorts at one place of its plan, at most. */
function mostRows(node: PlanNode): number {
  const own = (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
  return Math.max(own, ...(node.Plans ?? []).map(mostRows));
}

/** How often a statement runs one part of its plan, at most. */
function mostLoops(node: PlanNode): number {
  return Math.max(node['Actual Loops'], ...(node.Plans ?? []).map(mostLoops));
}

const literal = (value: unknown): string => {
  if (Array.isArray(value)) return `ARRAY[${value.map(literal).join()}]`;
  return typeof value === 'number' ? String(value) : `'${String(value)}'`;
};

/** The text of a statement with its values in it. */
const inlined = ({ text: sql, values }: BoundText) =>
  sql.replace(/[?$](\d+)/g, (_, nth: string) => literal(values[Number(nth) - 1]));

/** The lists of a relation, which note the statements of pages. */
function listsOf(db: BareDatabase, of: Relation, all: readonly Relation[], noted: string[]) {
  const dialect = db.engine === 'sqlite' ? SQLITE_ROWS : POSTGRES_ROWS;
  return new RowListSql(
    new RowSql(of, dialect),
    {
      dialect,
      statements: statementTexts(),
      read(statement) {
        const sql = inlined(statement);
        noted.push(sql);
        return db.rows(sql);
      },
      levels: () => assert.fail('the list has no nested rows'),
    },
    new Map(all.map((each) => [each.name, each])),
  );
}

/** The plan of a statement of PostgreSQL, with what it did. */
async function analyzed(db: BareDatabase, sql: string): Promise<PlanNode> {
  const [[plan]] = (await db.rows(`EXPLAIN (ANALYZE, FORMAT JSON) ${sql}`)) as [[unknown]];
  const [{ Plan }] = (typeof plan === 'string' ? JSON.parse(plan) : plan) as [{ Plan: PlanNode }];
  return Plan;
}

/** What is wrong with the plan of a statement; undefined if it reads few rows. */
async function fault(db: BareDatabase, sql: string): Promise<string | undefined> {
  if (db.engine === 'sqlite') {
    const plan = await db.rows(`EXPLAIN QUERY PLAN ${sql}`);
    const lines = plan.map(([id, parent, , detail]) => ({ id, parent, detail: String(detail) }));
    // The rows of parts may be sorted, which are as many as fit the page.
    const isOfParts = ({ parent }: { parent: unknown }) =>
      lines.some((line) => line.parent === parent && /\bpart$|UNION ALL|CO-ROUTINE r$/.test(line.detail));
    const sorts = lines.find((line) => line.detail.includes('TEMP B-TREE') && !isOfParts(line));
    return sorts && `${sql}\n${lines.map(({ detail }) => detail).join('\n')}`;
  }
  const root = await analyzed(db, sql);
  // It may walk along another index if it expects to find the page within few rows.
  return mostRows(root) <= ROWS / 8 ? undefined : `${sql}\n${JSON.stringify(root)}`;
}

for (const [engine, open] of Object.entries(bareEngines)) {
  describe(`plans of lists on ${engine}`, () => {
    test('an index yields every page of a walk, forwards and back, without a sort of other rows', async () => {
      await using db = await open();
      const all = [PARENTS, EVENTS, PLACES];
      for (const statement of schemaStatements(db.engine, all)) await db.run(statement);
      for (const statement of fillText(engine).split(';')) await db.run(statement);
      const relations = new Map(all.map((each) => [each.name, each]));
      for (const [of, query] of WALKS) {
        const noted: string[] = [];
        const lists = listsOf(db, of, all, noted);
        const asked: RowListShape = readRowList(
          relations,
          of,
          Object.fromEntries(new URLSearchParams(query)),
          false,
        );
        let next: readonly Value[] | undefined;
        let pages = 0;
        for (const backwards of [false, false, false, true]) {
          const page = await lists.page({ shape: asked, limit: LIMIT, next, backwards });
          assert.ok(page.count > 0, `${query}: ${noted.at(-1)}`);
          next = backwards ? page.first : pages === 2 ? page.first : page.last;
          pages++;
        }
        assert.equal(noted.length, 4, `${of.name} ${query} is a walk`);
        for (const sql of noted) assert.equal(await fault(db, sql), undefined, query);
      }
      for (const query of SEEKS) {
        const noted: string[] = [];
        const parameters = Object.fromEntries(new URLSearchParams(query));
        const shape = readRowList(relations, EVENTS, parameters, false);
        const page = await listsOf(db, EVENTS, all, noted).page({
          shape,
          limit: LIMIT,
          next: undefined,
          backwards: false,
        });
        assert.ok(page.count > 0, `${query}: ${noted.at(-1)}`);
        if (engine !== 'sqlite') continue;
        const sql = noted.at(-1) ?? '';
        const removal = inlined(await listsOf(db, EVENTS, all, noted).removal(shape.where, LIMIT));
        for (const text of [sql, removal]) {
          const plan = await db.rows(`EXPLAIN QUERY PLAN ${text}`);
          const details = plan.map(([, , , detail]) => String(detail));
          assert.ok(
            details.some((each) => /^SEARCH (x\d+|few) USING (COVERING )?INDEX events__/.test(each)),
            `${query}: ${details.join('\n')}`,
          );
        }
      }
      for (const query of COUNTS) {
        const noted: string[] = [];
        const parameters = Object.fromEntries(new URLSearchParams(query));
        const { where } = readRowList(relations, EVENTS, parameters, false);
        const counted = await listsOf(db, EVENTS, all, noted).count(where);
        assert.ok(counted > 0 && counted < ROWS, `${query}: ${counted}`);
        if (engine !== 'postgres') continue;
        const sql = String(noted.at(-1));
        assert.ok(mostLoops(await analyzed(db, sql)) < ROWS / 8, sql);
      }
    });
  });
}
