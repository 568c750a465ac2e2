import { type ResolveSelection, type ResolveTogether, TogetherError } from '@portico/graphql-plans';
import type { RequestContext } from '@portico/transport';
import { type RowAccess, requireAny } from '../../access/row-access.ts';
import type { Column, Relation } from '../../relations/relation.ts';
import { faultCode } from '../../relations/rows/faults.ts';
import { type RowFault, RowFormat, type RowKey } from '../../relations/rows/rows.ts';
import type { RowWrite, StoredRow, WriteOutcome } from '../../relations/rows/writes.ts';
import { NestedCreates } from '../../relations/selections/nested-creates.ts';
import type { WriteCondition } from '../../relations/user.ts';
import type { CallerRows, RowsFor } from '../callers/caller-rows.ts';
import { keyOf, resultOf } from './reads.ts';
import { faultyRows, missingRow, refusal, refusedWrites, showing, shown } from './refusals.ts';
import { RowRenderer } from './rendered-rows.ts';
import type { SelectedRows, SelectionReader } from './selections.ts';

/** What writes need of the service: who may write the relations of nested rows, besides the rows. */
export interface WriteOptions extends RowAccess {
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
  /** Where its writes begin. */
  readonly first: number;
  /** The writes of the rows that it returns. */
  readonly rows: readonly number[];
  /** The pointer to the row of a write. */
  pointerOf(write: number): string;
}

/** An operation whose writes are gathered. */
interface Operation {
  readonly writes: RowWrite[];
  readonly caller: CallerRows;
  readonly ctx: RequestContext | undefined;
}

interface WriteInput {
  readonly data?: unknown;
  readonly on?: readonly string[];
  readonly ifVersion?: number | null;
}

/** Maximum number of rows of a field, and of all fields. */
const MAX_ROWS = 1_000;

/** Resolves the fields of mutations: all of an operation in one transaction, or each in one. */
export class Writes {
  readonly #options: WriteOptions;

  constructor(options: WriteOptions) {
    this.#options = options;
  }

  /** Does the writes of fields in one transaction. */
  readonly together: ResolveTogether = async (calls, request) => {
    const caller = this.#options.rowsFor(request);
    const ctx = request as RequestContext | undefined;
    const writes: RowWrite[] = [];
    const planned = calls.map((call, i): Planned => {
      const write = call.field.definition.extensions.writes as FieldWrite;
      const first = writes.length;
      try {
        const read = this.#read(write, call.given, { writes, caller, ctx });
        if (writes.length > MAX_ROWS) throw tooManyRows();
        return { write, first, ...read };
      } catch (error) {
        throw new TogetherError(i, shown(error));
      }
    });
    // What the fields select is refused before anything is written.
    const selected = calls.map(({ field, info }, i) => {
      const { write, rows } = planned[i] as Planned;
      if (write.kind === 'remove') return undefined;
      try {
        const asked = { rows: rows.length };
        return this.#options.selections.read(field, write.relation, info.variableValues, asked, caller.view);
      } catch (error) {
        throw new TogetherError(i, shown(error));
      }
    });
    const outcomes = await this.#write(caller, writes, planned);
    return calls.map((_, i) => {
      const { write, rows } = planned[i] as Planned;
      const shape = selected[i];
      if (shape === undefined) return true;
      const stored = rows.flatMap((each) => {
        const outcome = outcomes[each];
        return outcome === undefined || outcome.is === 'removed' ? [] : [outcome.row];
      });
      return showing(async () => {
        const texts = await textsOf(caller, stored, shape);
        if (write.kind === 'createAll') return resultOf(`[${texts.join()}]`, shape, rows.length);
        const [json = NO_ROW] = texts;
        return json === NO_ROW ? null : resultOf(json, shape, rows.length);
      });
    });
  };

  /** Does the writes of one field, in one transaction. */
  readonly single: ResolveSelection = async (field, given, request, info) => {
    try {
      const [value] = await this.together([{ field, given, info }], request);
      return value;
    } catch (error) {
      throw error instanceof TogetherError ? error.cause : error;
    }
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
        const call = planned.findLastIndex(({ first, rows }) => rows.length > 0 && first <= write);
        return { call, pointer: planned[call]?.pointerOf(write) ?? '#' };
      };
      throw refusedWrites(error, (write) => writes[write]?.relation ?? '', placeOf);
    }
  }

  /** Reads the arguments of a field, and adds its writes to those of the operation. Throws GraphQLError or HttpProblem. */
  #read(
    { kind, relation }: FieldWrite,
    given: Readonly<Record<string, unknown>>,
    operation: Operation,
  ): Pick<Planned, 'rows' | 'pointerOf'> {
    const { data, on = [], ifVersion } = given as WriteInput;
    const { name } = relation;
    const { writes, caller: rows } = operation;
    const { caller } = rows;
    const view = rows.viewOf(relation);
    const format = new RowFormat(relation);
    const faults: RowFault[] = [];
    const one = (write: RowWrite) => {
      if (faults.length > 0) throw faultyRows(faultCode(faults), faults);
      return { rows: [writes.push(write) - 1], pointerOf: () => '#' };
    };
    switch (kind) {
      case 'create':
        return this.#create(relation, [data], operation, () => '#');
      case 'createAll':
        return this.#create(relation, data as readonly unknown[], operation, (i) => `#/${i}`);
      case 'upsert':
        for (const column of on)
          rows.view?.requireReadable('on', relation, relation.columns[format.indexOf(column)] as Column);
        return one(format.readUpsert(data, { on, resolution: 'merge' }, { at: '#', caller, faults, view }));
      case 'update': {
        const key = this.#keyOf(relation, given);
        const patch = format.readPatch(data, key, faults, view);
        return one({ is: 'change', relation: name, key, patch, condition: this.#condition(ifVersion) });
      }
      case 'remove': {
        const key = this.#keyOf(relation, given);
        return one({ is: 'remove', relation: name, key, condition: this.#condition(ifVersion) });
      }
    }
  }

  /** Reads new rows, perhaps with rows of other relations within them; `at` returns the pointer to one. */
  #create(
    relation: Relation,
    rows: readonly unknown[],
    { writes, caller, ctx }: Operation,
    at: (nth: number) => string,
  ): Pick<Planned, 'rows' | 'pointerOf'> {
    if (rows.length > MAX_ROWS) throw tooManyRows();
    const { selections, rules, policy } = this.#options;
    const creates = new NestedCreates(selections.relations, {
      caller: caller.caller,
      view: caller.view,
      writes,
      authorize(name) {
        if (ctx === undefined) return;
        if (rules?.governs(name) === true) requireAny({ rules, policy }, ctx, name, ['create']);
        else policy?.authorizeOperation(ctx, 'write', name);
      },
    });
    for (const [i, row] of rows.entries()) creates.add(relation, row, at(i));
    if (creates.faults.length > 0) throw faultyRows(faultCode(creates.faults), creates.faults);
    return {
      rows: creates.trees.map(({ write }) => write),
      pointerOf: (write) => creates.pointerOf(write),
    };
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
