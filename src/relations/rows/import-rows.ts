import { TimeSlice } from '../../core/scheduler.ts';
import { didYouMean, quote } from '../../core/text.ts';
import {
  absentValue,
  givenCodec,
  isAssigned,
  MAX_FAULTS,
  MAX_ROW,
  setValue,
  sizeOfRow,
  tooLargeRow,
} from '../given-values.ts';
import { withComputed } from '../hooks/computed.ts';
import type { ImportTarget } from '../import.ts';
import { ImportError, type ReadFields, type ReadRecord, type Refusal } from '../import-readers.ts';
import { type Column, isComputed, type Relation, type Value } from '../relation.ts';
import type { RelationView } from '../rules/views.ts';
import { conflictFaults, faultCode, listedFaults, toldFaults } from './faults.ts';
import {
  type RowConflict,
  type RowFault,
  RowFormat,
  type RowKey,
  type RowStore,
  type RowValues,
} from './rows.ts';

/** A row of an import. */
export interface NewRow {
  readonly values: RowValues;
  /** The record as it was read, without defaults. */
  readonly given: unknown;
}

/** Maximum length of a line, in UTF-16 code units: the size of a single create. */
const MAX_LINE = 1024 * 1024;
/** Rows per commit, fewer if they have many columns. */
const BATCH = { rows: 2_000, values: 20_000 } as const;
/** Rows of one transaction, fewer if they have many columns. */
const TRANSACTION = { rows: 50_000, values: 100_000 } as const;

/** How many unknown names of an import get a proposal. */
const MAX_PROPOSALS = 10;

/** Imports of a relation's rows; `caller` is the name of who sends them. A dry one only finds conflicts. */
export function rowImports(
  store: RowStore,
  caller: string | undefined,
  view?: RelationView,
  isDry = false,
): ImportTarget<NewRow, RowKey> {
  const { relation } = store;
  const format = new RowFormat(relation);
  const proposals = { left: MAX_PROPOSALS };
  const rowsOf = ({ rows, values }: typeof BATCH | typeof TRANSACTION) =>
    Math.min(rows, Math.ceil(values / relation.columns.length));
  const valuesOf = (rows: readonly NewRow[]) => rows.map(({ values }) => values);
  return {
    name: `rows of ${relation.name}`,
    maxLine: MAX_LINE,
    batchRows: rowsOf(BATCH),
    maxRows: rowsOf(TRANSACTION),
    read(given) {
      const faults: RowFault[] = [];
      const values = format.readRow(given, {
        caller,
        faults,
        ignoresSerial: true,
        view,
        most: MAX_FAULTS.ofLine,
        proposals,
      });
      return faults.length > 0 ? invalid(faults) : { row: { values, given }, size: sizeOfRow(values) };
    },
    readHeader: (names) => readHeader(relation, names, caller, view),
    // Given values, since those of some defaults differ each time.
    identify: ({ given }) => JSON.stringify(given),
    async store(rows, checkpoint) {
      const { keys, conflicts } = await store.importRows(valuesOf(rows), {
        isWhole: false,
        isDry,
        checkpoint,
      });
      const refused = refusalsOf(conflicts);
      return rows.map((_, i) => refused.get(i) ?? { id: keys[i] ?? [] });
    },
    async storeAll(rows, checkpoint) {
      const { keys, conflicts } = await store.importRows(valuesOf(rows), { isWhole: true, checkpoint });
      const slice = new TimeSlice();
      const refused: (readonly [number, Refusal])[] = [];
      for (const [row, own] of Map.groupBy(conflicts, (conflict) => conflict.row)) {
        refused.push([row, refusalOf(own)]);
        if (slice.isOver) await slice.next();
      }
      if (refused.length > 0) return { refused };
      return { ids: keys.map((key = []) => key) };
    },
  };
}

/** Keys of imports are those of a relation: those of users begin without a slash. */
export function importKey(relation: Relation, key: string): string {
  return `/${relation.name} ${key}`;
}

function invalid(faults: readonly RowFault[]): Refusal {
  const { ofLine } = MAX_FAULTS;
  return {
    code: faultCode(faults),
    reason: toldFaults(faults, ofLine),
    errors: listedFaults(faults, ofLine),
  };
}

/** The refusals of rows by their index, each with all of its conflicts. */
function refusalsOf(conflicts: readonly RowConflict[]): ReadonlyMap<number, Refusal> {
  const found = new Map<number, Refusal>();
  for (const [row, own] of Map.groupBy(conflicts, (conflict) => conflict.row)) found.set(row, refusalOf(own));
  return found;
}

function refusalOf(own: readonly RowConflict[]): Refusal {
  const errors = own.flatMap((conflict) => conflictFaults(conflict, '#')).slice(0, MAX_FAULTS.ofLine);
  const [{ code } = { code: 'TAKEN' as const }] = own;
  return { code, reason: toldFaults(errors), errors };
}

/**
 * Reads the header of a CSV: names of columns, in any order. Ignores a number that the service assigns.
 * Throws ImportError.
 */
function readHeader(
  relation: Relation,
  names: readonly string[],
  caller: string | undefined,
  view: RelationView | undefined,
): ReadFields<NewRow> {
  const known = relation.columns.map(({ name }) => name);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw wrong(`${relation.name} has no column ${quote(unknown)}${didYouMean(unknown, known)}`);
  }
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw wrong(`The column ${quote(twice)} occurs twice`);
  const readers = relation.columns.map((column, i): FieldReader => {
    const at = names.indexOf(column.name);
    const unwritable = at === -1 ? undefined : view?.unwritable(column, true);
    if (unwritable !== undefined) {
      return (_, faults) => {
        faults.push({ detail: unwritable, pointer: `#/${column.name}`, code: 'NOT_ALLOWED' });
        return null;
      };
    }
    if (view?.set.has(i) === true) {
      return (_, faults) => setValue(column, view.set.get(i), `#/${column.name}`, faults);
    }
    if (at === -1 && isRequired(column)) {
      throw wrong(`The first line does not name the column ${quote(column.name)}`);
    }
    return fieldReader(column, isAssigned(column) ? -1 : at, caller);
  });
  const format = new RowFormat(relation);
  return (fields): ReadRecord<NewRow> => {
    const faults: RowFault[] = [];
    const values = withComputed(
      relation,
      readers.map((read) => read(fields, faults)),
    );
    format.checkPath(values, '#', faults);
    if (faults.length > 0) return invalid(faults);
    const size = sizeOfRow(values);
    if (size <= MAX_ROW) return { row: { values, given: fields }, size };
    return invalid([tooLargeRow('#')]);
  };
}

type FieldReader = (fields: readonly (string | undefined)[], faults: RowFault[]) => Value;

function isRequired(column: Column): boolean {
  const { type, nullable, default: value } = column;
  return type.kind !== 'serial' && !nullable && value === undefined && !isComputed(column);
}

/**
 * Reads the field of a column. An empty field without quotes is null in a nullable column, otherwise the
 * default, otherwise an empty text; with quotes it is an empty text.
 */
function fieldReader(column: Column, at: number, caller: string | undefined): FieldReader {
  const { name, type, nullable } = column;
  const codec = givenCodec(column);
  const refuse = (faults: RowFault[], problem: string): Value => {
    if (faults.length < MAX_FAULTS.ofLine)
      faults.push({ detail: `"${name}" ${problem}`, pointer: `#/${name}` });
    return null;
  };
  return (fields, faults) => {
    const missing = () => absentValue(column, caller, '#', faults);
    if (at === -1) return missing();
    const field = fields[at];
    if (field === undefined) {
      if (nullable) return null;
      if (!isRequired(column)) return missing();
    }
    const parsed = codec.parseText(field ?? '');
    if ('problem' in parsed)
      return refuse(faults, field === undefined ? 'must not be empty' : parsed.problem);
    // JSON has one null, which is that of the column.
    if (type.kind !== 'json' || parsed.value !== 'null') return parsed.value;
    return nullable ? null : refuse(faults, 'must not be null');
  };
}

function wrong(problem: string): ImportError {
  return new ImportError('INVALID_IMPORT', problem, 1);
}
