import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { codecOf } from '../../relations/codecs.ts';
import type { ColumnType, Relation } from '../../relations/relation.ts';
import { planRelations, requireAgreement, SchemaError } from './migrate.ts';
import type { Loss, SchemaSession, ValueFile } from './steps.ts';
import { type Column, declaredTables, type Engine, identifier, type Table, textLiteral } from './tables.ts';

/**
 * Drops columns and tables that no longer are declared, such as `books.subtitle` or `loans`, each after its
 * values were written to `<name>.ndjson` in `folder`, or `<name>-2.ndjson` if that exists. Returns the paths. Fails with SchemaError before the first
 * one if a name is declared or unknown, or if steps are left that need no loss.
 */
export async function dropUndeclared(
  session: SchemaSession,
  relations: readonly Relation[],
  names: readonly string[],
  folder: string,
): Promise<readonly string[]> {
  if (names.length === 0) return [];
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
    await requireAgreement(session, relations, 'drop');
    const declared = declaredTables(session.engine, relations);
    const paths: string[] = [];
    for (const name of names) {
      const table = declared.find((each) => name.startsWith(`${each.name}.`));
      const column = table === undefined ? undefined : name.slice(table.name.length + 1);
      const loss: Loss = { table: table?.name ?? name, column, declared: table };
      paths.push(await dropOne(session, loss, join(folder, name.replaceAll(/[/\\]/g, '_'))));
    }
    return paths;
  });
}

async function dropOne(session: SchemaSession, loss: Loss, path: string): Promise<string> {
  using file = new LossFile(path);
  await session.drop(loss, file);
  return file.path;
}

/** The file with the values of one loss. It has its name once it is complete on the disk. */
class LossFile implements ValueFile {
  /** The path of the complete file. */
  path = '';
  readonly #base: string;
  readonly #partial: string;
  #file: number | undefined;

  constructor(base: string) {
    this.#base = base;
    this.#partial = `${base}.ndjson.partial`;
  }

  write(lines: readonly string[]): void {
    try {
      // Replaces the remains of a killed process.
      this.#file ??= openSync(this.#partial, 'w', 0o600);
      writeSync(this.#file, lines.map((line) => `${line}\n`).join(''));
    } catch (cause) {
      throw this.#failure(cause);
    }
  }

  complete(): void {
    try {
      this.write([]);
      if (this.#file !== undefined) fsyncSync(this.#file);
      this.path = this.#publish();
      syncFolder(dirname(this.path));
    } catch (cause) {
      throw cause instanceof SchemaError ? cause : this.#failure(cause);
    }
  }

  /** Gives the file the first free name: an older one may have the values of an earlier loss. */
  #publish(): string {
    for (let nth = 1; ; nth++) {
      const path = `${this.#base}${nth === 1 ? '' : `-${nth}`}.ndjson`;
      if (existsSync(path)) continue;
      renameSync(this.#partial, path);
      return path;
    }
  }

  #failure(cause: unknown): SchemaError {
    const message = `The values cannot be written to ${this.#partial}: ${(cause as Error).message}`;
    return new SchemaError(message, { cause });
  }

  /** Keeps a complete file even if the loss failed, because a failed commit may have been made. */
  [Symbol.dispose](): void {
    if (this.#file === undefined) return;
    closeSync(this.#file);
    rmSync(this.#partial, { force: true });
  }
}

function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** Fails with SchemaError if references need the loss, which an engine would refuse or break. */
export function requireUnreferenced(tables: readonly Table[], { table, column }: Loss): void {
  const referring = tables.flatMap(({ name, foreignKeys }) =>
    foreignKeys
      .filter(
        (key) =>
          key.table === table && (column === undefined ? name !== table : key.targetColumns.includes(column)),
      )
      .map((key) => `${name}.${key.columns.join(',')}`),
  );
  const reading = tables
    .filter(({ name }) => name === table)
    .flatMap(({ columns }) =>
      columns.filter(({ computed }) => column !== undefined && computed?.includes(identifier(column))),
    );
  if (reading.length > 0) {
    const names = reading.map(({ name }) => `${table}.${name}`).join(' and ');
    throw new SchemaError(
      `${table}.${column} cannot be dropped, because ${names} is computed from it; drop that first.`,
    );
  }
  if (referring.length === 0) return;
  const lost = column === undefined ? table : `${table}.${column}`;
  const [verb, what] = referring.length === 1 ? ['refers', 'that column'] : ['refer', 'those columns'];
  throw new SchemaError(
    `${lost} cannot be dropped, because ${referring.join(' and ')} ${verb} to it. Remove ${what} from the declaration and drop ${referring.length === 1 ? 'it' : 'them'} first.`,
  );
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
