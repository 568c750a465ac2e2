import { type ResolveTogether, TogetherError } from '@portico/graphql-plans';
import type { Column, Relation } from '../../relations/relation.ts';
import { faultCode } from '../../relations/rows/faults.ts';
import { type RowFault, RowFormat, type RowKey } from '../../relations/rows/rows.ts';
import type { RowWrite, StoredRow, WriteOutcome } from '../../relations/rows/writes.ts';
import type { WriteCondition } from '../../relations/user.ts';
import type { CallerRows, RowsFor } from '../callers/caller-rows.ts';
import { keyOf, resultOf } from './reads.ts';
import { faultyRows, missingRow, refusal, refusedWrites, showing, shown } from './refusals.ts';
import { RowRenderer } from './rendered-rows.ts';
import type { SelectedRows, SelectionReader } from './selections.ts';

/** What writes need of the service. */
export interface WriteOptions {
  readonly selections: SelectionReader;
  readonly rowsFor: RowsFor;
  /** Whether changes need the version of the row. */
  readonly requireIfMatch: boolean;
}

type Kind = 'create' | 'createAll' | 'upsert' | 'update' | 'remove';

/** Marks the field of a mutation with what it does: `extensions.writes`. */
export interface FieldWrite {
  readonly kind: Kind;
  readonly relation: Relation;
}

/** A field with its writes among those of the transaction. */
interface Planned {
  readonly write: FieldWrite;
  readonly first: number;
  readonly count: number;
}

interface WriteInput {
  readonly data?: unknown;
  readonly on?: readonly string[];
  readonly ifVersion?: number | null;
}

/** Maximum number of rows of a field, and of all fields. */
const MAX_ROWS = 1_000;

/** Resolves the fields of mutations: all of an operation in one transaction. */
export class Writes {
  readonly #options: WriteOptions;

  constructor(options: WriteOptions) {
    this.#options = options;
  }

  /** Does the writes of fields in one transaction. */
  readonly together: ResolveTogether = async (calls, request) => {
    const caller = this.#options.rowsFor(request);
    const writes: RowWrite[] = [];
    const planned = calls.map((call, i): Planned => {
      const write = call.field.definition.extensions.writes as FieldWrite;
      const first = writes.length;
      try {
        writes.push(...this.#read(write, call.given, caller));
        if (writes.length > MAX_ROWS) throw tooManyRows();
        return { write, first, count: writes.length - first };
      } catch (error) {
        throw new TogetherError(i, shown(error));
      }
    });
    // What the fields select is refused before anything is written.
    const selected = calls.map(({ field, info }, i) => {
      const { write, count } = planned[i] as Planned;
      if (write.kind === 'remove') return undefined;
      try {
        const asked = { rows: count };
        return this.#options.selections.read(field, write.relation, info.variableValues, asked, caller.view);
      } catch (error) {
        throw new TogetherError(i, shown(error));
      }
    });
    const outcomes = await this.#write(caller, writes, planned);
    return calls.map((_, i) => {
      const { write, first, count } = planned[i] as Planned;
      const rows = selected[i];
      if (rows === undefined) return true;
      const stored = outcomes
        .slice(first, first + count)
        .flatMap((outcome) => (outcome.is === 'removed' ? [] : [outcome.row]));
      return showing(async () => {
        const texts = await textsOf(caller, stored, rows);
        if (write.kind === 'createAll') return resultOf(`[${texts.join()}]`, rows, count);
        const [json = NO_ROW] = texts;
        return json === NO_ROW ? null : resultOf(json, rows, count);
      });
    });
  };

  async #write(
    caller: CallerRows,
    writes: readonly RowWrite[],
    planned: readonly Planned[],
  ): Promise<readonly WriteOutcome[]> {
    const [first] = planned;
    if (writes.length === 0 || first === undefined) return [];
    try {
      return await caller.of(first.write.relation).transactions.write(writes);
    } catch (error) {
      const placeOf = (write: number) => {
        const call = planned.findLastIndex(({ first, count }) => count > 0 && first <= write);
        const { first, write: field } = planned[call] as Planned;
        return { call, pointer: field.kind === 'createAll' ? `#/${write - first}` : '#' };
      };
      throw refusedWrites(error, (write) => writes[write]?.relation ?? '', placeOf);
    }
  }

  #read(
    { kind, relation }: FieldWrite,
    given: Readonly<Record<string, unknown>>,
    rows: CallerRows,
  ): readonly RowWrite[] {
    const { data, on = [], ifVersion } = given as WriteInput;
    const { name } = relation;
    const { caller } = rows;
    const view = rows.viewOf(relation);
    const format = new RowFormat(relation);
    const faults: RowFault[] = [];
    const checked = <T>(writes: readonly T[]) => {
      if (faults.length > 0) throw faultyRows(faultCode(faults), faults);
      return writes;
    };
    switch (kind) {
      case 'create':
        return checked([
          { is: 'create', relation: name, row: format.readRow(data, { caller, faults, view }) },
        ]);
      case 'createAll': {
        const all = data as readonly unknown[];
        if (all.length > MAX_ROWS) throw tooManyRows();
        const row = (each: unknown, i: number) =>
          format.readRow(each, { at: `#/${i}`, caller, faults, view });
        return checked(all.map((each, i) => ({ is: 'create', relation: name, row: row(each, i) })));
      }
      case 'upsert':
        for (const column of on)
          rows.view?.requireReadable('on', relation, relation.columns[format.indexOf(column)] as Column);
        return checked([
          format.readUpsert(data, { on, resolution: 'merge' }, { at: '#', caller, faults, view }),
        ]);
      case 'update': {
        const key = this.#keyOf(relation, given);
        const patch = format.readPatch(data, key, faults, view);
        return checked([{ is: 'change', relation: name, key, patch, condition: this.#condition(ifVersion) }]);
      }
      case 'remove': {
        const key = this.#keyOf(relation, given);
        return [{ is: 'remove', relation: name, key, condition: this.#condition(ifVersion) }];
      }
    }
  }

  #keyOf(relation: Relation, given: Readonly<Record<string, unknown>>): RowKey {
    const key = keyOf(relation, given);
    if (key === undefined) throw missingRow(relation.name);
    return key;
  }

  #condition(version: number | null | undefined): WriteCondition | undefined {
    if (version != null) return { versions: [version], before: undefined };
    if (!this.#options.requireIfMatch) return undefined;
    throw refusal('PRECONDITION_REQUIRED', 'This service needs `ifVersion` with the `_version` of the row');
  }
}

/** A row that the caller has written and may not read. */
const NO_ROW = 'null';

/** The JSON of stored rows, as far as the caller may read them. */
async function textsOf(
  caller: CallerRows,
  stored: readonly StoredRow[],
  { shape: { selection } }: SelectedRows,
): Promise<readonly string[]> {
  const seen = await caller.of(selection.relation).shows(stored.map(({ values }) => values));
  const visible = stored.filter((_, i) => seen[i] === true);
  const texts = (await new RowRenderer(caller).render(visible, selection)).values();
  return stored.map((_, i) => (seen[i] === true ? (texts.next().value ?? NO_ROW) : NO_ROW));
}

function tooManyRows() {
  return refusal(
    'LIMIT_EXCEEDED',
    `An operation writes at most ${MAX_ROWS} rows; send the others in further ones`,
    { limit: 'rows' },
  );
}
