import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { postgresUrl } from '../../support/databases.ts';
import { runCommand } from '../../support/run-command.ts';

/** Rows of each relation. */
export interface Sizes {
  /** Rows of 200 columns. */
  readonly wide: number;
  /** Rows of about 1 MiB. */
  readonly large: number;
  /** Children of the one parent that has most. */
  readonly children: number;
}

/** The types of the columns of `wide`, again and again, with what a statement makes of the number of a row, `i`. */
const TYPES = [
  { type: { type: 'integer' }, sql: 'i' },
  { type: { type: 'timestamp' }, sql: '1700000000000 + i', postgres: 'to_timestamp(1700000000 + i)' },
  { type: { type: 'decimal', precision: 18, scale: 4 }, sql: '12345678 + i' },
  { type: { type: 'bigint' }, sql: '9007199254740993 + i' },
  { type: { type: 'text', max: 60 }, sql: "'text of row number ' || i" },
  { type: { type: 'boolean' }, sql: 'i % 2', postgres: 'i % 2 = 0' },
  { type: { type: 'uuid' }, sql: "'0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b'" },
  { type: { type: 'number' }, sql: 'i + 0.125' },
  { type: { type: 'date' }, sql: "'2024-02-29'" },
] as const;

/** A declaration may have 200 columns: these, `id` and two for the parent. */
const WIDE = Array.from({ length: 197 }, (_, i) => {
  const found = TYPES[i % TYPES.length] ?? TYPES[0];
  return { name: `c${i}`, ...found };
});

const TEXT = 65_536;
export const MIB = 1024 * 1024;
const parent = {
  type: 'reference',
  to: 'parents',
  columns: ['parent_country', 'parent_code'],
  nullable: true,
} as const;

/** Relations with as much as a declaration allows. */
export const RELATIONS = {
  parents: {
    key: ['country', 'code'],
    columns: {
      country: { type: 'text', max: 8 },
      code: { type: 'integer' },
      name: { type: 'text', max: 60, fold: true },
    },
    indexes: [['name']],
  },
  wide: {
    one: 'wide_row',
    columns: {
      ...Object.fromEntries(WIDE.map(({ name, type }) => [name, { ...type, nullable: true }])),
      parent: { ...parent, inverse: 'wide' },
    },
    indexes: WIDE.slice(0, 40).map(({ name }) => [name]),
    changes: false,
  },
  large: {
    one: 'large_row',
    columns: {
      a: { type: 'text', max: TEXT, nullable: true },
      doc: { type: 'json', maxBytes: MIB, nullable: true },
      data: { type: 'bytes', max: MIB, nullable: true },
      parent: { ...parent, inverse: 'large' },
    },
  },
  children: {
    one: 'child',
    columns: {
      id: { type: 'serial', open: true },
      parent: { ...parent, inverse: 'children', onDelete: 'cascade' },
      name: { type: 'text', max: 60 },
      n: { type: 'integer' },
    },
    indexes: [['n']],
  },
  grand: {
    one: 'grandchild',
    columns: {
      child: { type: 'reference', to: 'children', inverse: 'grand', onDelete: 'cascade' },
      name: { type: 'text', max: 60 },
    },
  },
  defaulted: {
    one: 'default',
    columns: Object.fromEntries(
      Array.from({ length: 15 }, (_, i) => [
        `d${i}`,
        { type: 'text', max: TEXT, default: 'x'.repeat(TEXT) } as const,
      ]),
    ),
  },
  /** Rows that lack 199 columns. */
  strict: {
    one: 'strict_one',
    columns: Object.fromEntries(Array.from({ length: 199 }, (_, i) => [`column_${i}`, { type: 'integer' }])),
  },
} as const;

/** The names of the columns of `wide`. */
export const WIDE_COLUMNS: readonly string[] = WIDE.map(({ name }) => name);

/** The statements that fill the tables of either engine. */
function fill({ wide, large, children }: Sizes, engine: 'sqlite' | 'postgres'): readonly string[] {
  const isSqlite = engine === 'sqlite';
  const n = (count: number) =>
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`;
  const repeat = (text: string, count: number) =>
    isSqlite ? `replace(printf('%.*c', ${count}, '-'), '-', '${text}')` : `repeat('${text}', ${count})`;
  const blob = isSqlite ? 'randomblob(900000)' : `decode(repeat('00ff', 450000), 'hex')`;
  const json = `'["' || ${repeat('y', 60_000)} || '"]'`;
  const value = ({ sql, ...own }: (typeof WIDE)[number]) => {
    if (isSqlite) return sql;
    return `CAST(${'postgres' in own ? own.postgres : sql} AS ${POSTGRES[own.type.type]})`;
  };
  const names = WIDE.map(({ name }) => `"${name}"`).join();
  const version = '1700000000000';
  return [
    `${n(200)} INSERT INTO parents (country, code, name, _version) SELECT 'c' || (i % 10), i, 'parent ' || i, ${version} FROM n`,
    `${n(wide)} INSERT INTO wide (${names}, parent_country, parent_code, _version)
      SELECT ${WIDE.map(value).join()}, 'c' || ((i % 200 + 1) % 10), i % 200 + 1, ${version} FROM n`,
    `${n(large)} INSERT INTO large (a, doc, data, parent_country, parent_code, _version)
      SELECT ${repeat('z', TEXT)}, CAST(${json} AS ${isSqlite ? 'text' : 'json'}), ${blob}, 'c1', 1, ${version} FROM n`,
    `${n(children)} INSERT INTO children (parent_country, parent_code, name, n, _version) SELECT 'c1', 1, 'child ' || i, i, ${version} FROM n`,
    `${n(2_000)} INSERT INTO children (parent_country, parent_code, name, n, _version)
      SELECT 'c' || ((i % 200 + 1) % 10), i % 200 + 1, 'child ' || i, i, ${version} FROM n`,
    `INSERT INTO grand (child_id, name, _version) SELECT id, 'grandchild', ${version} FROM children WHERE id % 4 = 0`,
  ];
}

const POSTGRES: Readonly<Record<(typeof TYPES)[number]['type']['type'], string>> = {
  integer: 'bigint',
  timestamp: 'timestamptz',
  decimal: 'numeric(18, 4)',
  bigint: 'bigint',
  text: 'text',
  boolean: 'boolean',
  uuid: 'uuid',
  number: 'double precision',
  date: 'date',
};

/** Writes the declaration into a folder and fills the tables; resolves to the URL of the database. */
export async function filledDatabase(
  cwd: string,
  engine: 'sqlite' | 'postgres',
  sizes: Sizes,
): Promise<string> {
  await writeFile(join(cwd, 'portico.config.json'), JSON.stringify({ relations: RELATIONS }));
  const url = engine === 'sqlite' ? `sqlite:${join(cwd, 'portico.db')}` : await postgresUrl();
  const { code, stderr } = await runCommand(['migrate'], { cwd, env: { DATABASE_URL: url } });
  if (code !== 0) throw new Error(stderr);
  if (engine === 'sqlite') {
    using db = new DatabaseSync(join(cwd, 'portico.db'), { timeout: 20_000 });
    db.exec('PRAGMA synchronous = off');
    for (const sql of fill(sizes, engine)) db.exec(sql);
    return url;
  }
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const sql of fill(sizes, engine)) await client.query(sql);
    await client.query('ANALYZE');
  } finally {
    await client.end();
  }
  return url;
}
