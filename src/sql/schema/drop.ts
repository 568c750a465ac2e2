import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { codecOf } from '../../relations/codecs.ts';
import type { ColumnType, Relation } from '../../relations/relation.ts';
import { planRelations, requireAgreement, SchemaError } from './migrate.ts';
import type { Loss, SchemaSession } from './steps.ts';
import { type Column, declaredTables, type Engine, identifier, type Table, textLiteral } from './tables.ts';

/**
 * Drops columns and tables that no longer are declared, such as `books.subtitle` or `loans`, each after its
 * values were written to `<name>.ndjson` in `folder`. Returns the paths. Fails with SchemaError before the first
 * one if a name is declared or unknown, or if steps are left that need no loss.
 */
export async function dropUndeclared(
  session: SchemaSession,
  relations: readonly Relation[],
  names: readonly string[],
  folder: string,
): Promise<readonly string[]> {
  return session.exclusively(async () => {
    const { undeclared } = await planRelations(session, relations);
    const unknown = names.filter((name) => !undeclared.includes(name));
    if (unknown.length > 0) {
      const known =
        undeclared.length === 0 ? 'there is nothing else' : `these are not: ${undeclared.join(', ')}`;
      throw new SchemaError(
        `${unknown.join(', ')} cannot be dropped, because it is declared or does not exist; ${known}.`,
      );
    }
    await requireAgreement(session, relations);
    const declared = declaredTables(session.engine, relations);
    const paths: string[] = [];
    for (const name of names) {
      const table = declared.find((each) => name.startsWith(`${each.name}.`));
      const column = table === undefined ? undefined : name.slice(table.name.length + 1);
      const loss: Loss = { table: table?.name ?? name, column, declared: table };
      paths.push(await dropOne(session, loss, join(folder, `${name.replaceAll(/[/\\]/g, '_')}.ndjson`)));
    }
    return paths;
  });
}

/** The file is complete on the disk before the loss is committed, and is removed if that fails. */
async function dropOne(session: SchemaSession, loss: Loss, path: string): Promise<string> {
  let file: number;
  try {
    file = openSync(path, 'wx', 0o600);
  } catch (cause) {
    throw new SchemaError(`The values cannot be written to ${path}: ${(cause as Error).message}`, { cause });
  }
  try {
    try {
      await session.drop(loss, (lines) => {
        writeSync(file, lines.map((line) => `${line}\n`).join(''));
        fsyncSync(file);
      });
    } finally {
      closeSync(file);
    }
    return path;
  } catch (error) {
    rmSync(path);
    throw error;
  }
}

/** Each row as JSON: the key and the lost column, or all columns of a lost table. */
export function lossQuery(engine: Engine, { name, key, columns }: Table, { column }: Loss): string {
  const lost = columns.filter(
    (each) => column === undefined || each.name === column || key.includes(each.name),
  );
  const members = lost.map((each) => [each.name, jsonOf(engine, each)] as const);
  const from = `FROM ${identifier(name)}${key.length > 0 ? ` ORDER BY ${key.map(identifier).join(', ')}` : ''}`;
  if (engine === 'sqlite')
    return `SELECT json_object(${members.map(([each, json]) => `${textLiteral(each)}, ${json}`).join(', ')}) ${from}`;
  // A function takes at most 100 arguments.
  const row = members.map(([each, json]) => `${json} AS ${identifier(each)}`).join(', ');
  return `SELECT (SELECT row_to_json(of) FROM (SELECT ${row}) AS of)::text ${from}`;
}

/** A column as clients see it; one that is not Portico's as the engine writes it. */
function jsonOf(engine: Engine, { name, kind, identity }: Column): string {
  const column = identifier(name);
  const scale = /^decimal(\d+)$/.exec(kind)?.[1];
  const bounds = { open: false, max: 0, maxBytes: 0, fold: false, values: [] };
  const type =
    scale === undefined
      ? { ...bounds, kind: identity === undefined ? kind : 'serial' }
      : { kind: 'decimal', precision: 18, scale: Number(scale) };
  return codecOf(type as ColumnType)[engine].json(column);
}
