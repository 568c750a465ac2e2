import type { Connection } from './pool/connection.ts';
import { sqlState } from './pool/faults.ts';

const CREATE_INDEX = /^CREATE (?<unique>UNIQUE )?INDEX (?<name>\w+) ON (?<table>\w+)(?<rest>[^;]*);/gm;
const UNDEFINED_COLUMN = '42703';

/** An index that a migration creates. */
export interface MigrationIndex {
  readonly name: string;
  readonly table: string;
  /** Creates it while others write, unless it exists; for use outside a transaction. */
  readonly concurrently: string;
}

/** The indexes that the SQL of a migration creates. */
export function indexesOf(sql: string): readonly MigrationIndex[] {
  return Array.from(sql.matchAll(CREATE_INDEX), ({ groups }) => {
    const { unique = '', name = '', table = '', rest = '' } = groups ?? {};
    const concurrently = `CREATE ${unique}INDEX CONCURRENTLY IF NOT EXISTS ${name} ON ${table}${rest}`;
    return { name, table, concurrently };
  });
}

/** The SQL of a migration, with its indexes left alone that exist already. */
export function unlessBuilt(sql: string): string {
  return sql.replace(CREATE_INDEX, 'CREATE $<unique>INDEX IF NOT EXISTS $<name> ON $<table>$<rest>;');
}

/**
 * Builds an index while others write: without this, writes would wait until it is built. It is left to the migration
 * when that adds a column which the index needs. What an interrupted build has left is replaced.
 */
export async function buildConcurrently(connection: Connection, index: MigrationIndex): Promise<void> {
  const valid = { text: 'SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)' };
  const [row] = await connection.run(valid, [index.name]);
  if (row?.[0] === false) {
    await connection.run({ text: `DROP INDEX CONCURRENTLY ${index.name}` }, undefined);
  }
  try {
    await connection.run({ text: index.concurrently }, undefined);
  } catch (error) {
    if (sqlState(error) !== UNDEFINED_COLUMN) throw error;
  }
}
