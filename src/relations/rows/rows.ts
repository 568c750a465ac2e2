import type { Caller } from '@portico/transport';
import type { MaybePromise } from '../../core/scheduler.ts';
import { didYouMean, quote } from '../../core/text.ts';
import type { Codec } from '../codec.ts';
import { codecOf, maxBytesOf } from '../codecs.ts';
import {
  absentValue,
  assigned,
  decoded,
  givenCodec,
  MAX_FAULTS,
  MAX_ROW,
  type Proposals,
  pointerTo,
  setValue,
  sizeOfRow,
  tooLargeRow,
} from '../given-values.ts';
import { withComputed } from '../hooks/computed.ts';
import type { HookConflict } from '../hooks/hooks.ts';
import type { ImportCheckpoint, ImportPosition } from '../import.ts';
import { type Column, type ColumnType, isComputed, type Relation, type Value } from '../relation.ts';
import type { RelationView, RowView } from '../rules/views.ts';
import type { RowAggregates } from '../selections/aggregates.ts';
import type { IdempotencyKey, WriteCondition } from '../user.ts';
import type { Condition } from './conditions.ts';
import type { RowExports } from './row-exports.ts';
import type { RowLists } from './row-lists.ts';
import type {
  PutColumns,
  PutRule,
  RowOutcome,
  RowTransactions,
  StoredRow,
  Upsert,
  UpsertRule,
} from './writes.ts';

/** The values of a row, in the order of the relation's columns; a serial that the engine assigns is null. */
export type RowValues = readonly Value[];

/** The values of a key, in the order of the relation's key. */
export type RowKey = readonly Value[];

/** The outcome of a create with an idempotency key. */
export type CreateOnceOutcome =
  /** The row that this or an earlier request with the key created; undefined if it is gone. */
  | { readonly is: 'created'; readonly key: RowKey; readonly row: StoredRow | undefined }
  /** The key was used before with another body. */
  | { readonly is: 'reused' }
  /** A request with the key is in progress. */
  | { readonly is: 'running' };

/**
 * The rows of a relation in a database. Writes fail with RowsRefusedError if constraints refuse them, and all
 * methods with StoreUnavailableError while the database cannot answer.
 */
export interface RowStore {
  readonly relation: Relation;
  readonly lists: RowLists;
  /** Writes to the rows of this and other relations. */
  readonly transactions: RowTransactions;
  readonly exports: RowExports;
  readonly aggregates: RowAggregates;
  read(key: RowKey): MaybePromise<StoredRow | undefined>;
  /** Stores all rows or none, in one commit. */
  create(rows: readonly RowValues[]): Promise<readonly StoredRow[]>;
  /** Stores a row once per key: the outcome is stored in the same commit. */
  createOnce(row: RowValues, key: IdempotencyKey): Promise<CreateOnceOutcome>;
  /** Changes some columns of a row. */
  change(key: RowKey, patch: RowPatch, condition: WriteCondition | undefined): Promise<RowOutcome>;
  /**
   * Stores a whole row in the place of another, or a new one. `columns` are the indexes of those that change in a row that
   * is there, by default all but the key, and of those that it must have as given.
   */
  put(row: RowValues, rule: PutRule, columns?: PutColumns): Promise<RowOutcome>;
  remove(key: RowKey, condition: WriteCondition | undefined): Promise<RowOutcome>;
  /**
   * Removes all rows that meet a condition in one commit; resolves to their number, without those that go with
   * them. Fails with TooManyRowsError if they are more than `max`, and with UnindexedListError.
   */
  removeAll(where: Condition, max: number): Promise<number>;
  /** The relations with rows that forbid the removal of a row. */
  referrersOf(key: RowKey): Promise<readonly string[]>;
  /** The rows as a caller may read and write them; these rows themselves without a view. Hooks are told the caller. */
  as(view: RowView | undefined, caller?: Caller): RowStore;
  /** Which of some rows the caller may read, by their values. */
  shows(rows: readonly RowValues[]): MaybePromise<readonly boolean[]>;
  /** Stores rows of an import in one commit. Fails with ImportError if its position has moved. */
  importRows(rows: readonly RowValues[], rule: ImportRule): Promise<ImportedRows>;
  /** Starts or resumes an import with a key, which other relations must not use. */
  beginImport(key: string): Promise<ImportPosition>;
}

/** The outcome of storing rows of an import. */
export interface ImportedRows {
  /** The key of each row; undefined if it was not stored. */
  readonly keys: readonly (RowKey | undefined)[];
  readonly conflicts: readonly RowConflict[];
}

/** How rows of an import are stored; a dry one only finds conflicts, and has no keys. */
export interface ImportRule {
  /** Whether all rows are stored or none; otherwise each succeeds or fails alone. */
  readonly isWhole: boolean;
  readonly isDry?: boolean;
  /** The position that the import moves to in the same commit. */
  readonly checkpoint: ImportCheckpoint | undefined;
}

/** The rows of all relations of a declaration, by the relation's name. */
export type RowStores = ReadonlyMap<string, RowStore>;

/** The changed columns of a row, by their index. */
export type RowPatch = ReadonlyMap<number, Value>;

/** Why a constraint refuses a row. */
export type RowConflict =
  /** Another row has the same values of these columns, or an earlier one of the same write. */
  | { readonly code: 'TAKEN'; readonly row: number; readonly columns: readonly string[] }
  /** The row that these columns refer to does not exist. */
  | {
      readonly code: 'REFERENCE_MISSING';
      readonly row: number;
      readonly columns: readonly string[];
      readonly to: string;
    }
  /** Rows of a relation refer to the row; the relation is undefined if that happens through other rows. */
  | { readonly code: 'REFERENCED'; readonly row: number; readonly by: string | undefined }
  /** A rule does not let the caller write the row, as it is or as it would be. */
  | { readonly code: 'NOT_ALLOWED'; readonly row: number }
  | HookConflict;

/** Constraints refuse a write; nothing was stored. */
export class RowsRefusedError extends Error {
  override readonly name = 'RowsRefusedError';
  readonly code: RowConflict['code'];
  readonly conflicts: readonly RowConflict[];

  constructor(conflicts: readonly [RowConflict, ...RowConflict[]]) {
    super('Constraints refuse the rows');
    this.code = conflicts[0].code;
    this.conflicts = conflicts;
  }
}

/** More rows meet the condition of a removal than it may remove; none was removed. */
export class TooManyRowsError extends Error {
  override readonly name = 'TooManyRowsError';
  readonly max: number;

  constructor(max: number) {
    super(`More than ${max} rows match`);
    this.max = max;
  }
}

/** A fault of a body; `pointer` is a JSON Pointer as a URI fragment. */
export interface RowFault {
  readonly detail: string;
  readonly pointer: string;
  /** Given if a rule refuses the value, whatever it is. */
  readonly code?: 'NOT_ALLOWED';
  /** The code that a hook gives. */
  readonly reason?: string;
}

/** The pointer of a row that is upserted, and what `RowFormat.readRow` takes. */
interface UpsertPlace {
  readonly at: string;
  readonly caller: string | undefined;
  readonly later?: ReadonlySet<string> | undefined;
  readonly faults: RowFault[];
  /** What the caller may write. */
  readonly view?: RelationView | undefined;
}

/** How the member of a column is read. */
interface MemberReader {
  readonly column: Column;
  readonly codec: Codec;
  /** The place in the key; -1 outside it. */
  readonly part: number;
  /** Whether objects without the member have a property of its name. */
  readonly isInherited: boolean;
  /** Why no client writes it; undefined if the service does not assign it. */
  readonly assigned: string | undefined;
}

/** Reads and writes the JSON of a relation's rows, and the keys in its paths. */
export class RowFormat {
  readonly relation: Relation;
  /** The index of the serial column among the columns; -1 without one. */
  readonly serial: number;
  /** The indexes of the key's columns. */
  readonly keyIndexes: readonly number[];
  /** Whether a key may be a text that no path can have. */
  readonly #mayLackPath: boolean;
  readonly #names: ReadonlyMap<string, number>;
  readonly #readers: readonly MemberReader[];
  /** Whether a row may have more bytes than a row may. */
  readonly #mayBeLarge: boolean;

  constructor(relation: Relation) {
    this.relation = relation;
    const { columns, key } = relation;
    this.#names = new Map(columns.map(({ name }, i) => [name, i]));
    this.#mayBeLarge = columns.reduce((bytes, { type }) => bytes + maxBytesOf(type), 0) > MAX_ROW;
    this.serial = columns.findIndex(({ type }) => type.kind === 'serial');
    this.keyIndexes = key.map((name) => this.indexOf(name));
    const [{ type } = { type: undefined }] = this.keyIndexes.map((i) => columns[i] as Column);
    this.#mayLackPath = key.length === 1 && PATHLESS_TYPES.includes(type?.kind);
    this.#readers = columns.map((column) => ({
      column,
      codec: givenCodec(column),
      part: key.indexOf(column.name),
      isInherited: column.name in Object.prototype,
      assigned: assigned(column),
    }));
  }

  /** The column of a name that a client may have made up. */
  columnOf(name: string): Column | undefined {
    return this.relation.columns[this.#names.get(name) ?? -1];
  }

  /** The index of a column. */
  indexOf(name: string): number {
    const index = this.#names.get(name);
    if (index === undefined) throw new Error(`${this.relation.name} has no column ${name}`);
    return index;
  }

  /** Whether clients give the key of a new row, so that PUT can create one. */
  get clientsGiveKeys(): boolean {
    const { type } = this.relation.columns[this.serial] ?? {};
    return type?.kind !== 'serial' || type.open;
  }

  keyOf(values: RowValues): RowKey {
    return this.keyIndexes.map((index) => values[index] ?? null);
  }

  /** The JSON of a row; `only` names the columns by index. */
  json(values: RowValues, only?: readonly number[]): string {
    let text = '';
    const { columns } = this.relation;
    const add = (i: number) => {
      const column = columns[i] as Column;
      text += `${text === '' ? '{' : ','}"${column.name}":${jsonOf(column.type, values[i] ?? null)}`;
    };
    if (only === undefined) for (let i = 0; i < columns.length; i++) add(i);
    else for (const i of only) add(i);
    return text === '' ? '{}' : `${text}}`;
  }

  /** The JSON object of a key. */
  keyJson(key: RowKey): string {
    const members = key.map((value, i) => {
      const { name, type } = this.relation.columns[this.keyIndexes[i] ?? -1] as Column;
      return `"${name}":${jsonOf(type, value)}`;
    });
    return `{${members.join()}}`;
  }

  /** Reads the key in a path: its parts in order, each percent-encoded, with commas between. */
  readPath(segment: string): RowKey | undefined {
    const parts = segment.split(',');
    if (parts.length !== this.keyIndexes.length) return undefined;
    const key: Value[] = [];
    for (const [i, part] of parts.entries()) {
      const value = this.readPart(i, part);
      if (value === undefined) return undefined;
      key.push(value);
    }
    return key;
  }

  /** Reads one part of the key in a path. */
  readPart(nth: number, part: string): Value | undefined {
    const { type } = this.relation.columns[this.keyIndexes[nth] ?? -1] as Column;
    const text = decoded(part);
    const parsed = text === undefined ? undefined : codecOf(type).parseText(text);
    return parsed !== undefined && 'value' in parsed ? parsed.value : undefined;
  }

  /** The segment of a path that `readPath` reads. */
  path(key: RowKey): string {
    return key
      .map((value, i) => {
        const { type } = this.relation.columns[this.keyIndexes[i] ?? -1] as Column;
        return value === null ? '' : encodeURIComponent(codecOf(type).formatText(value));
      })
      .join();
  }

  /**
   * Reads a whole row from parsed JSON, fills in defaults, and adds its faults, up to `most`: a small body may have
   * any number of them. `at` is the row's pointer.
   * `key`, if given, is the key in the path, which the body may repeat. `ignoresSerial` says that what
   * the service assigns may be there, as in an export, and is not used.
   */
  readRow(
    given: unknown,
    {
      at = '#',
      key,
      caller,
      faults,
      ignoresSerial = false,
      later,
      most = MAX_FAULTS.listed,
      proposals,
      view,
    }: {
      at?: string;
      key?: RowKey;
      caller: string | undefined;
      faults: RowFault[];
      ignoresSerial?: boolean;
      /** The columns that get their values later; they are null until then. */
      later?: ReadonlySet<string> | undefined;
      most?: number;
      proposals?: Proposals;
      /** What the caller may write. */
      view?: RelationView | undefined;
    },
  ): RowValues {
    const members = this.#members(given, { at, faults, most, proposals });
    if (members === undefined) return [];
    const before = faults.length;
    const plain = this.#readers.map(({ column, codec, part, isInherited, assigned }, i) => {
      if (faults.length >= most) return null;
      const { name } = column;
      const own = isInherited && !Object.hasOwn(members, name) ? undefined : members[name];
      const isInPath = key !== undefined && part >= 0;
      if (own !== undefined && !isInPath) this.#requireWritable(column, view, true, at, faults);
      if (view?.set.has(i) === true) {
        const pointer = pointerTo(at, name);
        const value = setValue(column, view.set.get(i), pointer, faults);
        const isOther = isInPath && jsonOf(column.type, key[part] ?? null) !== jsonOf(column.type, value);
        if (isOther && value !== null) {
          const detail = `"${name}" is set by the service, to another value than in the path`;
          faults.push({ detail, pointer, code: 'NOT_ALLOWED' });
        }
        return value;
      }
      if (isInPath) {
        const value = key[part] ?? null;
        if (own !== undefined) this.#requireSame(column, own, value, pointerTo(at, name), faults);
        return value;
      }
      if (own !== undefined) {
        if (assigned === undefined)
          return later?.has(name) ? null : readMember(column, codec, own, at, faults);
        if (!ignoresSerial) faults.push({ detail: assigned, pointer: pointerTo(at, name) });
        return null;
      }
      return absentValue(column, caller, at, faults);
    });
    const row = withComputed(this.relation, plain);
    this.checkPath(row, at, faults);
    if (this.#mayBeLarge && faults.length === before && sizeOfRow(row) > MAX_ROW) {
      faults.push(tooLargeRow(at));
    }
    return row;
  }

  /** Adds a fault if no path can have the key of a row: clients leave such segments out. */
  checkPath(row: RowValues, at: string, faults: RowFault[]): void {
    const [value] = this.#mayLackPath ? this.keyOf(row) : [];
    if (value === undefined || value === null) return;
    const text = this.path([value]);
    if (!PATHLESS.includes(text)) return;
    const [name = ''] = this.relation.key;
    const detail = `"${name}" must not be "${text}" as the key, which stands in the path`;
    if (!faults.some(({ pointer }) => pointer === pointerTo(at, name))) {
      faults.push({ detail, pointer: pointerTo(at, name) });
    }
  }

  /** Reads a row to be upserted, and adds its faults. */
  readUpsert(
    given: unknown,
    { on, resolution }: UpsertRule,
    { at, caller, later, faults, view }: UpsertPlace,
  ): Upsert {
    const { relation } = this;
    const row = this.readRow(given, { at, caller, later, faults, view });
    const came = (name: string) => Object.hasOwn(Object(given) as object, name);
    for (const column of row.length === 0 ? [] : on) {
      // A null equals nothing, so that no row would be found.
      if (row[this.indexOf(column)] !== null || later?.has(column)) continue;
      if (faults.some(({ pointer }) => pointer === `${at}/${column}`)) continue;
      faults.push({ detail: `"${column}" needs a value, because "on" names it`, pointer: `${at}/${column}` });
    }
    const others = relation.columns.flatMap((column, i) =>
      came(column.name) && !relation.key.includes(column.name) && !on.includes(column.name)
        ? [{ i, isFixed: view?.unwritable(column, false) !== undefined }]
        : [],
    );
    const merged = others.flatMap(({ i, isFixed }) => (isFixed ? [] : [i]));
    const same = others.flatMap(({ i, isFixed }) => (isFixed ? [i] : []));
    return {
      is: 'upsert',
      relation: relation.name,
      row,
      on,
      merged: resolution === 'merge' ? merged : undefined,
      givesKey: on !== relation.key && relation.key.some(came),
      ...(same.length > 0 && { same }),
    };
  }

  /** Adds a fault for a column that the caller may not write. */
  #requireWritable(
    column: Column,
    view: RelationView | undefined,
    isNew: boolean,
    at: string,
    faults: RowFault[],
  ): void {
    const detail = view?.unwritable(column, isNew);
    if (detail !== undefined)
      faults.push({ detail, pointer: pointerTo(at, column.name), code: 'NOT_ALLOWED' });
  }

  /** Reads a merge patch from parsed JSON and adds its faults; `key` is the key in the path. */
  readPatch(given: unknown, key: RowKey, faults: RowFault[], view?: RelationView): RowPatch {
    const patch = new Map<number, Value>();
    const members = this.#members(given, { at: '#', faults, most: MAX_FAULTS.listed });
    for (const [name, own] of Object.entries(members ?? {})) {
      const i = this.#names.get(name);
      if (i === undefined) continue;
      const column = this.relation.columns[i] as Column;
      const part = this.relation.key.indexOf(name);
      if (part >= 0) this.#requireSame(column, own, key[part] ?? null, pointerTo('#', name), faults);
      else {
        this.#requireWritable(column, view, false, '#', faults);
        const detail = isComputed(column) ? assigned(column) : undefined;
        if (detail !== undefined) faults.push({ detail, pointer: pointerTo('#', name) });
        else patch.set(i, readMember(column, givenCodec(column), own, '#', faults));
      }
    }
    return patch;
  }

  /** The members of a row; undefined, with a fault, for anything but an object. */
  #members(
    given: unknown,
    {
      at,
      faults,
      most,
      proposals,
    }: { at: string; faults: RowFault[]; most: number; proposals?: Proposals | undefined },
  ): Readonly<Record<string, unknown>> | undefined {
    if (typeof given !== 'object' || given === null || Array.isArray(given)) {
      faults.push({ detail: 'a row must be a JSON object', pointer: at });
      return undefined;
    }
    for (const name of Object.keys(given)) {
      if (this.#names.has(name)) continue;
      if (faults.length >= most) break;
      const isTold = proposals === undefined ? faults.length < MAX_FAULTS.told : proposals.left-- > 0;
      const proposal = isTold ? didYouMean(name, this.#names.keys()) : '';
      faults.push({
        detail: `${this.relation.name} has no column ${quote(name)}${proposal}`,
        pointer: pointerTo(at, name),
      });
    }
    return given as Readonly<Record<string, unknown>>;
  }

  #requireSame(column: Column, own: unknown, value: Value, pointer: string, faults: RowFault[]): void {
    const parsed = codecOf(column.type).parse(own);
    if ('value' in parsed && jsonOf(column.type, parsed.value) === jsonOf(column.type, value)) return;
    faults.push({ detail: `"${column.name}" is part of the key in the path and cannot change`, pointer });
  }
}

function jsonOf(type: ColumnType, value: Value): string {
  return value === null ? 'null' : codecOf(type).format(value);
}

/** `at` is the pointer of the row. */
function readMember(column: Column, codec: Codec, given: unknown, at: string, faults: RowFault[]): Value {
  let problem = 'must not be null';
  if (given !== null) {
    const parsed = codec.parse(given);
    if ('value' in parsed) return parsed.value;
    problem = parsed.problem;
  } else if (column.nullable) return null;
  faults.push({ detail: `"${column.name}" ${problem}`, pointer: `${at}/${column.name}` });
  return null;
}
/** Texts of a key that clients leave out of a path, or resolve. */
const PATHLESS: readonly string[] = ['', '.', '..'];
/** The types that have such a text. */
const PATHLESS_TYPES: readonly (ColumnType['kind'] | undefined)[] = ['text', 'enum', 'bytes'];
