import type { Caller } from '@portico/transport';
import { conflictFaults, toldFaults } from '../../relations/rows/faults.ts';
import { type RowConflict, RowFormat, RowsRefusedError } from '../../relations/rows/rows.ts';
import {
  EarlierValue,
  type Given,
  type RowTransactions,
  type RowWrite,
  type ShownWrites,
  type WriteOutcome,
  WriteRefusedError,
  type WritesOnceOutcome,
} from '../../relations/rows/writes.ts';
import { isAll } from '../../relations/rules/rule-trees.ts';
import type { RowView } from '../../relations/rules/views.ts';
import type { IdempotencyKey } from '../../relations/user.ts';
import type { RowEngine } from '../relations/row-engine.ts';
import type { RowSql } from '../relations/row-sql.ts';
import { additionOf } from '../rules/ruled-writes.ts';
import { type HookedRelation, isHooked, type PreparedWrite, WritePreparation } from './prepared-writes.ts';

/** How often hooks run again because a row was changed after they had seen it. */
const RETRIES = 3;

/** The transactions below, and what hooks need to see rows. */
interface HookedOptions {
  readonly transactions: RowTransactions;
  readonly engine: RowEngine;
  readonly sqlOf: (relation: string) => RowSql | undefined;
  /** What the caller may read. */
  readonly view: RowView | undefined;
}

/** Transactions that run the hooks of relations first. The statements check that rows are still as the hooks saw them. */
export class HookedTransactions implements RowTransactions {
  readonly #options: HookedOptions;
  readonly #caller: Caller | undefined;
  readonly #relations: Map<string, HookedRelation>;

  constructor(options: HookedOptions, caller?: Caller, relations = new Map<string, HookedRelation>()) {
    this.#options = options;
    this.#caller = caller;
    this.#relations = relations;
  }

  /** The same, whose hooks are told the caller. */
  by(caller: Caller | undefined): HookedTransactions {
    return caller === undefined ? this : new HookedTransactions(this.#options, caller, this.#relations);
  }

  write(writes: readonly RowWrite[]): Promise<readonly WriteOutcome[]> {
    const { transactions } = this.#options;
    if (!this.#haveHooks(writes)) return transactions.write(writes);
    return this.#attempt(writes, async (prepared) => {
      const outcomes = await transactions.write(inOrder(prepared));
      return shownIn(prepared).map(({ write }) => outcomes[write] as WriteOutcome);
    });
  }

  /** An earlier outcome is found before hooks run again, so that they cannot refuse a stored row. */
  async writeOnce(writes: readonly RowWrite[], key: IdempotencyKey): Promise<WritesOnceOutcome> {
    const { transactions } = this.#options;
    if (!this.#haveHooks(writes)) return transactions.writeOnce(writes, key);
    const kept = await transactions.kept(key);
    if (kept !== undefined) return kept;
    return this.#attempt(writes, (prepared) =>
      transactions.writeOnce(inOrder(prepared), key, shownIn(prepared)),
    );
  }

  kept(key: IdempotencyKey): Promise<WritesOnceOutcome | undefined> {
    return this.#options.transactions.kept(key);
  }

  /** The rows of a relation as hooks see them. */
  relation(name: string): HookedRelation {
    const known = this.#relations.get(name);
    if (known !== undefined) return known;
    const { engine, sqlOf, view } = this.#options;
    const sql = sqlOf(name);
    if (sql === undefined) throw new Error(`There is no relation ${name}`);
    const { relation } = sql;
    const format = new RowFormat(relation);
    const made: HookedRelation = {
      relation,
      format,
      async find(columns, values) {
        const statement = sql.find(columns, values);
        const [stored] = statement === undefined ? [] : await engine.readLatest(statement);
        if (stored === undefined) return undefined;
        const row = sql.row(stored);
        const read = view?.of(relation).read;
        if (read === undefined || isAll(read)) return row;
        const [seen] = await engine.readLatest(sql.read(format.keyOf(row.values), additionOf(sql, read)));
        return seen === undefined ? 'hidden' : sql.row(seen);
      },
    };
    this.#relations.set(name, made);
    return made;
  }

  /** Runs the hooks of writes until a time, by their timeout. */
  preparation(writes: readonly RowWrite[], until: (timeout: number) => number): WritePreparation {
    return new WritePreparation((name) => this.relation(name), writes, { until, caller: this.#caller });
  }

  #haveHooks(writes: readonly RowWrite[]): boolean {
    return writes.some(({ relation, is }) => isHooked(this.relation(relation).relation, is));
  }

  async #attempt<T>(
    writes: readonly RowWrite[],
    work: (prepared: readonly PreparedWrite[]) => Promise<T>,
  ): Promise<T> {
    const start = performance.now();
    for (let attempt = 0; ; attempt++) {
      const prepared = await this.preparation(writes, (timeout) => start + timeout).prepare();
      try {
        return await work(prepared);
      } catch (error) {
        if (attempt < RETRIES && isOutdated(error, prepared)) continue;
        throw ofClient(error, prepared);
      }
    }
  }
}

/** The writes in the order of the transaction, with the values of earlier writes by their places in it. */
function inOrder(prepared: readonly PreparedWrite[]): readonly RowWrite[] {
  const places = new Map(prepared.map(({ id }, place) => [id, place]));
  const placed = (value: Given) =>
    value instanceof EarlierValue ? new EarlierValue(places.get(value.write) ?? -1, value.column) : value;
  return prepared.map(({ write }): RowWrite => {
    if (write.is === 'change')
      return {
        ...write,
        key: write.key.map(placed),
        patch: new Map([...write.patch].map(([i, value]) => [i, placed(value)])),
      };
    return write.is === 'remove'
      ? { ...write, key: write.key.map(placed) }
      : { ...write, row: write.row.map(placed) };
  });
}

/** The writes of the client among those of the transaction. */
function shownIn(prepared: readonly PreparedWrite[]): ShownWrites {
  const own = prepared.flatMap((each, write) => (each.isAdded ? [] : [{ ...each, write }]));
  return own.toSorted((a, b) => a.id - b.id).map(({ write, is }) => ({ write, is }));
}

/** Whether a row has changed since the hook saw it. */
function isOutdated(error: unknown, prepared: readonly PreparedWrite[]): boolean {
  if (error instanceof WriteRefusedError) {
    const { saw } = prepared[error.write] ?? {};
    return saw !== undefined && (error.reason === 'missing' || error.reason === 'refused');
  }
  if (!(error instanceof RowsRefusedError)) return false;
  return error.conflicts.some((conflict) => {
    const { saw } = prepared[conflict.row] ?? {};
    return Array.isArray(saw) && conflict.code === 'TAKEN' && conflict.columns.join() === saw.join();
  });
}

/** A refusal as one of the writes of the client. */
function ofClient(error: unknown, prepared: readonly PreparedWrite[]): unknown {
  if (error instanceof WriteRefusedError) {
    const found = prepared[error.write];
    if (found === undefined || !found.isAdded)
      return new WriteRefusedError(found?.origin ?? 0, error.reason, error.cause);
    const why = { missing: 'there is no such row', refused: 'the row was changed meanwhile' } as const;
    if (error.reason === 'unfit' || error.reason === 'large')
      return new WriteRefusedError(found.origin, error.reason, error.cause);
    return new RowsRefusedError([addedRefusal(found, why[error.reason])]);
  }
  if (!(error instanceof RowsRefusedError)) return error;
  const conflicts = error.conflicts.map((conflict): RowConflict => {
    const found = prepared[conflict.row];
    if (found === undefined) return conflict;
    if (!found.isAdded) return { ...conflict, row: found.origin };
    return addedRefusal(found, toldFaults(conflictFaults(conflict, '#')));
  });
  const [first, ...others] = conflicts;
  return first === undefined ? error : new RowsRefusedError([first, ...others]);
}

function addedRefusal({ write, origin }: PreparedWrite, why: string): RowConflict {
  const detail = `a write to ${write.relation} that a hook adds is refused: ${why}`;
  return { code: 'HOOK_REFUSED', row: origin, faults: [{ detail, pointer: '' }] };
}
