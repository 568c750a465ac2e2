import { IMPORT_KEPT, type ImportPosition } from '../../relations/import.ts';
import type { ImportedRows, ImportRule, RowConflict, RowKey, RowValues } from '../../relations/rows/rows.ts';
import { databaseRefusal } from '../existing/writes.ts';
import { storedKey } from '../inbox-sql.ts';
import { imports } from '../stores/stored-users.ts';
import { USER_QUERIES } from '../stores/user-queries.ts';
import { type CheckedRelation, conflictsOf } from './row-checks.ts';
import { type RowEngine, UnitError } from './row-engine.ts';

/** How often a write is repeated if its conflicts cannot be found any more. */
const RETRIES = 3;
/** Rows whose statements are built at a time; a whole transaction would take too long. */
const SLICE = 2_000;

/** Stores the rows of imports into a relation. */
export class RowImports {
  readonly #relation: CheckedRelation;
  readonly #engine: RowEngine;
  readonly #refersToItself: boolean;
  /** Whether the last batch had conflicts: the next one is then checked before it is stored. */
  #hadConflicts = false;

  constructor(relation: CheckedRelation, engine: RowEngine) {
    this.#relation = relation;
    this.#engine = engine;
    const { name, references } = relation.sql.relation;
    this.#refersToItself = references.some(({ to }) => to === name);
  }

  async begin(key: string): Promise<ImportPosition> {
    const { expireImports, beginImport } = USER_QUERIES;
    const now = Date.now();
    const [, [row = []] = []] = await this.#engine.writeAll([
      [expireImports, now - IMPORT_KEPT],
      [beginImport, storedKey(key), now],
    ]);
    const [line = 0, digest = null] = row;
    return { line: Number(line), digest: digest === null ? undefined : String(digest) };
  }

  /**
   * Stores rows without checking them first, since most imports have no conflicts. If the engine refuses
   * them, finds the conflicts and stores the others.
   */
  async store(
    rows: readonly RowValues[],
    { isWhole, isDry = false, checkpoint }: ImportRule,
  ): Promise<ImportedRows> {
    if (isDry) return { keys: [], conflicts: await conflictsOf(this.#relation, this.#engine, rows) };
    // Within one statement PostgreSQL would let a row refer to a later one.
    let checks = this.#hadConflicts || this.#refersToItself;
    let triesAlone = false;
    for (let attempt = 0; ; attempt++) {
      const declared = checks ? await conflictsOf(this.#relation, this.#engine, rows) : [];
      const conflicts = triesAlone ? [...declared, ...(await this.#refusedAlone(rows, declared))] : declared;
      this.#hadConflicts = conflicts.length > 0;
      if (isWhole && conflicts.length > 0) return { keys: [], conflicts };
      const refused = new Set(conflicts.map(({ row }) => row));
      const accepted = Array.from(rows.keys()).filter((row) => !refused.has(row));
      try {
        const stored = await this.#insert(
          accepted.map((row) => rows[row] ?? []),
          checkpoint,
        );
        const keys: (RowKey | undefined)[] = rows.map(() => undefined);
        for (const [i, row] of accepted.entries()) keys[row] = stored[i];
        return { keys, conflicts };
      } catch (error) {
        const isConflict = this.#engine.isConflict(error);
        const { existing } = this.#relation.sql.relation;
        const isOther = existing !== undefined && this.#engine.constraintOf(error) !== undefined;
        if (!(isConflict || isOther) || attempt === RETRIES) throw error;
        // The database may have constraints that the declaration does not have.
        triesAlone = isOther && (checks || !isConflict);
        checks = true;
      }
    }
  }

  /** The rows that other constraints refuse than those of the declaration: each is stored alone, and that is undone. */
  async #refusedAlone(
    rows: readonly RowValues[],
    declared: readonly RowConflict[],
  ): Promise<readonly RowConflict[]> {
    const { sql } = this.#relation;
    const known = new Set(declared.map(({ row }) => row));
    const found: RowConflict[] = [];
    for (const [row, values] of rows.entries()) {
      if (known.has(row)) continue;
      try {
        await this.#engine.unit([sql.insert(values, Date.now())], true);
      } catch (error) {
        if (!(error instanceof UnitError)) throw error;
        const constraint = this.#engine.constraintOf(error.cause);
        // It may refer to an earlier row.
        if (this.#engine.isConflict(error.cause) && constraint?.isUnique !== true) continue;
        const refusal = constraint && databaseRefusal(sql.relation, row, constraint);
        if (refusal === undefined) throw error.cause;
        found.push(...refusal.conflicts);
      }
    }
    return found;
  }

  /** Stores rows with the move of the import; resolves to their keys. */
  async #insert(
    rows: readonly RowValues[],
    checkpoint: ImportRule['checkpoint'],
  ): Promise<readonly RowKey[]> {
    const { sql } = this.#relation;
    if (rows.length === 0 && checkpoint === undefined) return [];
    const move = checkpoint === undefined ? [] : [imports.move(checkpoint)];
    // Numbers that rows give come first, so that none of them is assigned to another row.
    const given = Array.from(rows.keys()).filter((row) => sql.givesSerial(rows[row] ?? []));
    const others = Array.from(rows.keys()).filter((row) => !sql.givesSerial(rows[row] ?? []));
    const serials = new Map<number, number>();
    const steps: Parameters<RowEngine['writeAll']>[0][number][] = [...move];
    const reads: ((results: Awaited<ReturnType<RowEngine['writeAll']>>) => void)[] = [];
    for (const group of [given, others]) {
      for (let at = 0; at < group.length; at += SLICE) {
        const slice = group.slice(at, at + SLICE);
        const insert = this.#engine.insertMany(
          sql,
          slice.map((row) => rows[row] ?? []),
          Date.now(),
        );
        const first = steps.length;
        steps.push(...insert.steps);
        if (group === others && sql.hasSerial) {
          reads.push((results) => {
            const assigned = insert.serials(results.slice(first, first + insert.steps.length));
            for (const [i, row] of slice.entries()) serials.set(row, assigned[i] ?? 0);
          });
        }
        await new Promise(setImmediate);
      }
      if (group === given && given.length > 0) steps.push(...this.#engine.afterGiven(sql));
    }
    const results = await imports.refusingMoved(this.#engine.writeAll(steps));
    for (const read of reads) read(results);
    const { key } = sql.relation;
    return rows.map((values, row) =>
      key.map((column) => values[sql.indexOf(column)] ?? serials.get(row) ?? null),
    );
  }
}
