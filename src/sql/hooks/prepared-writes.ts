import type { Caller } from '@portico/transport';
import { TimeSlice } from '../../core/scheduler.ts';
import { codecOf } from '../../relations/codecs.ts';
import { isAssigned } from '../../relations/given-values.ts';
import {
  type AddedWrites,
  HOOK_TIMEOUT,
  type HookConflict,
  HookError,
  type HookRow,
  MAX_ADDED,
  runHook,
  StoredValue,
} from '../../relations/hooks/hooks.ts';
import { isComputed, type Relation, type Value } from '../../relations/relation.ts';
import {
  type RowFault,
  type RowFormat,
  RowsRefusedError,
  type RowValues,
} from '../../relations/rows/rows.ts';
import {
  EarlierValue,
  type Given,
  type RowWrite,
  replacedIn,
  type StoredRow,
  type Upsert,
  type WriteOutcome,
  WriteRefusedError,
} from '../../relations/rows/writes.ts';
import type { WriteCondition } from '../../relations/user.ts';

/** A relation as hooks need it. */
export interface HookedRelation {
  readonly relation: Relation;
  readonly format: RowFormat;
  /** The newest row that the caller may read with these values of columns; `hidden` if it may not read it. */
  find(columns: readonly string[], values: readonly Value[]): Promise<StoredRow | 'hidden' | undefined>;
}

/** A write as a transaction does it. Values of earlier writes name these by `id`. */
export interface PreparedWrite {
  readonly write: RowWrite;
  readonly id: number;
  /** The write of the client from which it comes. */
  readonly origin: number;
  readonly isAdded: boolean;
  /** What a write of the client does, given that it succeeds. */
  readonly is: WriteOutcome['is'];
  /** Whether the hook saw a row that may have changed since, or saw none: the columns by which it looked. */
  readonly saw: 'row' | readonly string[] | undefined;
}

/** Where a write comes from. */
type Origin = Pick<PreparedWrite, 'id' | 'origin' | 'isAdded'>;
/** What becomes of it. */
type Prepared = Pick<PreparedWrite, 'write' | 'is' | 'saw'>;

/** Runs the hooks of writes, each with what it adds: in front of deletions, and behind other writes. */
export class WritePreparation {
  readonly #all: (relation: string) => HookedRelation;
  readonly #writes: readonly RowWrite[];
  readonly #targets = new Map<string, number>();
  readonly #until: (timeout: number) => number;
  readonly #caller: Caller | undefined;
  #nextId: number;
  #added = 0;

  constructor(
    all: (relation: string) => HookedRelation,
    writes: readonly RowWrite[],
    { until, caller }: { until: (timeout: number) => number; caller: Caller | undefined },
  ) {
    this.#all = all;
    this.#writes = writes;
    this.#until = until;
    this.#caller = caller;
    this.#nextId = writes.length;
  }

  /** Fails with RowsRefusedError, WriteRefusedError and HookError. */
  async prepare(): Promise<readonly PreparedWrite[]> {
    const found: PreparedWrite[][] = [];
    const slice = new TimeSlice();
    for (let at = 0; at < this.#writes.length; at += CONCURRENT) {
      const some = this.#writes.slice(at, at + CONCURRENT);
      const prepared = await Promise.allSettled(
        some.map((write, i) => this.#expand(write, { id: at + i, origin: at + i, isAdded: false })),
      );
      for (const each of prepared) {
        // The first of the writes is told, whichever hook was faster.
        if (each.status === 'rejected') throw each.reason;
        found.push([...each.value]);
      }
      if (slice.isOver) await slice.next();
    }
    return found.flat();
  }

  async #expand(write: RowWrite, of: Origin): Promise<readonly PreparedWrite[]> {
    const hooked = this.#all(write.relation);
    if (!isHooked(hooked.relation, write.is)) return [{ ...of, write, is: isOf(write), saw: undefined }];
    const adding = new Adding(this.#all, { id: of.id, format: hooked.format }, () => this.#takeId(of.origin));
    const prepared = await this.#prepared(write, hooked, of, adding);
    const added: PreparedWrite[] = [];
    for (const each of adding.writes)
      added.push(...(await this.#expand(each.write, { id: each.id, origin: of.origin, isAdded: true })));
    const own = {
      ...of,
      ...prepared,
      write: { ...prepared.write, ...(write.isUnruled && { isUnruled: true }) },
    };
    return write.is === 'remove' ? [...added, own] : [own, ...added];
  }

  #takeId(origin: number): number {
    if (++this.#added > MAX_ADDED)
      throw refused(
        origin,
        'LIMIT_EXCEEDED',
        `the hooks of a request add at most ${MAX_ADDED} writes (hook writes)`,
      );
    return this.#nextId++;
  }

  async #prepared(write: RowWrite, hooked: HookedRelation, of: Origin, adding: Adding): Promise<Prepared> {
    const { format, relation } = hooked;
    if (write.is === 'create') {
      this.#target(
        hooked,
        format.keyIndexes.map((i) => write.row[i] ?? null),
        of,
        true,
      );
      return {
        write: { ...write, row: await this.#created(hooked, write.row, of, adding) },
        is: 'created',
        saw: undefined,
      };
    }
    const by = write.is === 'upsert' ? write.on : relation.key;
    const values =
      write.is === 'upsert' || write.is === 'put'
        ? by.map((name) => write.row[format.indexOf(name)] ?? null)
        : write.key;
    if (values.some((value) => value instanceof EarlierValue)) {
      const detail = `hooks of ${relation.name} need the row before the transaction begins, so its key cannot be a result of it`;
      throw refused(of.origin, 'HOOK_REFUSED', detail);
    }
    if (write.is !== 'upsert') this.#target(hooked, values, of, false);
    const stored = await hooked.find(by, values as readonly Value[]);
    if (stored === 'hidden' && write.is === 'upsert') throw taken(of.origin, by);
    const row = stored === 'hidden' ? undefined : stored;
    if (row !== undefined && write.is === 'upsert') this.#target(hooked, format.keyOf(row.values), of, false);
    if (row === undefined) return this.#withoutRow(write, hooked, by, of, adding);
    switch (write.is) {
      case 'upsert':
        return this.#upserted(write, hooked, row, of, adding);
      case 'put': {
        this.#requireMet(write.rule.condition, row, of);
        if (!write.rule.replaces) throw new WriteRefusedError(of.origin, 'refused');
        const replaced = write.replaced ?? replacedIn(relation);
        const given = new Map(replaced.map((i) => [i, write.row[i] ?? null]));
        const patch = await this.#changed(hooked, row, given, of, adding);
        const rule = { condition: condition(row), creates: false, replaces: true };
        const merged = write.row.map((value, i) => (patch.has(i) ? (patch.get(i) ?? null) : value));
        return {
          write: { ...write, row: merged, rule, replaced: [...patch.keys()] },
          is: 'changed',
          saw: 'row',
        };
      }
      case 'change': {
        this.#requireMet(write.condition, row, of);
        const patch = await this.#changed(hooked, row, write.patch, of, adding);
        return { write: { ...write, patch, condition: condition(row) }, is: 'changed', saw: 'row' };
      }
      case 'remove': {
        this.#requireMet(write.condition, row, of);
        const { before } = relation;
        if (before?.delete !== undefined)
          await this.#run(hooked, 'delete', of, (signal) =>
            before.delete?.({
              relation: relation.name,
              row: jsonOf(format, row.values, ALL_COLUMNS),
              version: row.version,
              caller: this.#caller,
              writes: adding,
              signal,
            }),
          );
        return { write: { ...write, condition: condition(row) }, is: 'removed', saw: 'row' };
      }
    }
  }

  async #withoutRow(
    write: Exclude<RowWrite, { readonly is: 'create' }>,
    hooked: HookedRelation,
    by: readonly string[],
    of: Origin,
    adding: Adding,
  ): Promise<Prepared> {
    const { relation } = write;
    if (write.is === 'upsert') {
      const row = await this.#created(hooked, write.row, of, adding);
      return { write: { is: 'create', relation, row }, is: 'created', saw: by };
    }
    if (write.is !== 'put' || !write.rule.creates) throw new WriteRefusedError(of.origin, 'missing');
    const row = await this.#created(hooked, write.row, of, adding);
    const rule = { condition: undefined, creates: true, replaces: false };
    return { write: { ...write, row, rule }, is: 'created', saw: by };
  }

  async #upserted(
    write: Upsert,
    hooked: HookedRelation,
    row: StoredRow,
    of: Origin,
    adding: Adding,
  ): Promise<Prepared> {
    const { relation, format } = hooked;
    const key = format.keyOf(row.values);
    const given = format.keyIndexes.map((i) => write.row[i] ?? null);
    if (write.merged === undefined) {
      const detail = `resolution=ignore is not possible for ${relation.name}, which has hooks, where the row is there already`;
      throw refused(of.origin, 'HOOK_REFUSED', detail);
    }
    if (write.givesKey && format.path(given as RowValues) !== format.path(key))
      throw taken(of.origin, write.on);
    for (const i of write.same ?? []) {
      const isSame = String(write.row[i] ?? null) === String(row.values[i] ?? null);
      if (!isSame) throw new RowsRefusedError([{ code: 'NOT_ALLOWED', row: of.origin }]);
    }
    const merged = new Map(write.merged.map((i) => [i, write.row[i] ?? null]));
    const patch = await this.#changed(hooked, row, merged, of, adding);
    return {
      write: { is: 'change', relation: relation.name, key, patch, condition: condition(row) },
      is: 'changed',
      saw: 'row',
    };
  }

  /** Two writes to one row would each be decided by the row before both. */
  #target(
    { relation, format }: HookedRelation,
    key: readonly Given[],
    { origin }: Origin,
    isNew: boolean,
  ): void {
    if (key.some((value) => value === null || value instanceof EarlierValue)) return;
    const place = `${relation.name}/${format.path(key as RowValues)}`;
    if (this.#targets.has(place) && !isNew) {
      const detail = `a transaction writes to a row of ${relation.name} once, because ${relation.name} has hooks; send one of the writes in another request`;
      throw refused(origin, 'HOOK_REFUSED', detail);
    }
    this.#targets.set(place, origin);
  }

  #requireMet(given: WriteCondition | undefined, { version }: StoredRow, { origin }: Origin): void {
    const { versions, before } = given ?? {};
    const isMet = (versions?.includes(version) ?? true) && (before === undefined || version < before);
    if (!isMet) throw new WriteRefusedError(origin, 'refused');
  }

  async #run<T>(
    { relation: { name: relation, before } }: HookedRelation,
    hook: 'create' | 'update' | 'delete',
    { origin }: Origin,
    run: (signal: AbortSignal) => T | Promise<T>,
  ): Promise<T> {
    const timeout = before?.timeout ?? HOOK_TIMEOUT;
    const outcome = await runHook({ relation, hook, until: this.#until(timeout), timeout }, run);
    if ('result' in outcome) return outcome.result;
    throw new RowsRefusedError([{ ...outcome, row: origin }]);
  }

  /** A new row as the hook wants it, checked like one of a client. */
  async #created(
    hooked: HookedRelation,
    row: readonly Given[],
    of: Origin,
    adding: Adding,
  ): Promise<readonly Given[]> {
    const { relation, format } = hooked;
    const { before } = relation;
    if (before?.create === undefined) return row;
    const given = jsonOf(
      format,
      row,
      (i) => !isComputed(relation.columns[i] ?? {}) && (i !== format.serial || row[i] !== null),
    );
    const returned = await this.#run(hooked, 'create', of, (signal) =>
      before.create?.({ relation: relation.name, row: given, caller: this.#caller, writes: adding, signal }),
    );
    if (returned === undefined) return row;
    const merged = merge(format, given, returned, 'create');
    const later = new Set(
      relation.columns.flatMap(({ name }, i) =>
        row[i] instanceof EarlierValue && !(name in merged) ? [name] : [],
      ),
    );
    const faults: RowFault[] = [];
    const read = format.readRow(
      { ...merged, ...Object.fromEntries([...later].map((name) => [name, null])) },
      { caller: undefined, faults, later },
    );
    requireNone(faults, of.origin);
    return read.map((value, i) => (later.has(relation.columns[i]?.name ?? '') ? (row[i] ?? null) : value));
  }

  /** The changes to a row as the hook wants them. */
  async #changed(
    hooked: HookedRelation,
    row: StoredRow,
    patch: ReadonlyMap<number, Given>,
    of: Origin,
    adding: Adding,
  ): Promise<ReadonlyMap<number, Given>> {
    const { relation, format } = hooked;
    const { before } = relation;
    if (before?.update === undefined) return patch;
    const whole = relation.columns.map((_, i) => patch.get(i) ?? null);
    const changes = jsonOf(format, whole, (i) => patch.has(i));
    const returned = await this.#run(hooked, 'update', of, (signal) =>
      before.update?.({
        relation: relation.name,
        before: jsonOf(format, row.values, ALL_COLUMNS),
        version: row.version,
        changes,
        caller: this.#caller,
        writes: adding,
        signal,
      }),
    );
    if (returned === undefined) return patch;
    const faults: RowFault[] = [];
    const merged = merge(format, changes, returned, 'update');
    const read = format.readPatch(merged, format.keyOf(row.values), faults);
    requireNone(faults, of.origin);
    return new Map<number, Given>([...patch, ...read]);
  }
}

/** Hooks of one request that run at the same time. */
export const CONCURRENT = 16;

/** Whether a relation has a hook for a kind of writes. */
export function isHooked({ before }: Relation, is: RowWrite['is']): boolean {
  if (before === undefined) return false;
  if (is === 'remove') return before.delete !== undefined;
  const [creates, updates] = [before.create !== undefined, before.update !== undefined];
  return is === 'create' ? creates : is === 'change' ? updates : creates || updates;
}

const condition = ({ version }: StoredRow): WriteCondition => ({ versions: [version], before: undefined });

function isOf(write: RowWrite): WriteOutcome['is'] {
  return (
    { create: 'created', change: 'changed', remove: 'removed', upsert: 'changed', put: 'changed' } as const
  )[write.is];
}

export function refused(row: number, code: HookConflict['code'], detail: string): RowsRefusedError {
  return new RowsRefusedError([{ code, row, faults: [{ detail, pointer: '' }] }]);
}

function taken(row: number, columns: readonly string[]): RowsRefusedError {
  return new RowsRefusedError([{ code: 'TAKEN', row, columns }]);
}

function requireNone(faults: readonly RowFault[], row: number): void {
  if (faults.length > 0)
    throw new RowsRefusedError([
      { code: 'INVALID_ROW', row, faults: faults.map(({ detail, pointer }) => ({ detail, pointer })) },
    ]);
}

const ALL_COLUMNS = () => true;

/** Columns of a row as JSON, without those that only the transaction knows. */
function jsonOf(format: RowFormat, row: readonly Given[], isShown: (column: number) => boolean): HookRow {
  const shown = row.flatMap((value, i) => (value instanceof EarlierValue || !isShown(i) ? [] : [i]));
  return JSON.parse(format.json(row as RowValues, shown)) as HookRow;
}

/** Columns with those that a hook returned in their place, except what the service assigns. */
function merge({ relation }: RowFormat, given: HookRow, returned: unknown, hook: string): HookRow {
  if (typeof returned !== 'object' || returned === null || Array.isArray(returned))
    throw new HookError(relation.name, hook, new Error('it must return an object of columns, or nothing'));
  const own = relation.columns.filter(isAssigned).map(({ name }) => name);
  const replaced = Object.entries(returned).filter(
    ([name, value]) => value !== undefined && !own.includes(name),
  );
  return { ...given, ...Object.fromEntries(replaced) };
}

/** Collects the writes that a hook adds. */
class Adding implements AddedWrites {
  readonly writes: { readonly id: number; readonly write: RowWrite }[] = [];
  readonly #all: (relation: string) => HookedRelation;
  readonly #of: { readonly id: number; readonly format: RowFormat };
  readonly #takeId: () => number;

  constructor(
    all: (relation: string) => HookedRelation,
    of: { readonly id: number; readonly format: RowFormat },
    takeId: () => number,
  ) {
    this.#all = all;
    this.#of = of;
    this.#takeId = takeId;
  }

  create(relation: string, row: HookRow): void {
    const { format } = this.#all(relation);
    const [plain, stored] = apart(row);
    const faults: RowFault[] = [];
    const read = format.readRow(
      { ...plain, ...Object.fromEntries([...stored.keys()].map((name) => [name, null])) },
      { caller: undefined, faults, later: new Set(stored.keys()) },
    );
    requireValid(relation, faults);
    const values = read.map(
      (value, i) => this.#earlier(stored.get(format.relation.columns[i]?.name ?? '')) ?? value,
    );
    this.#add({ is: 'create', relation, row: values, isUnruled: true });
  }

  update(relation: string, key: HookRow | string | number, changes: HookRow): void {
    const { format } = this.#all(relation);
    const [plain, stored] = apart(changes);
    const values = keyOf(format, key);
    const faults: RowFault[] = [];
    const patch = new Map<number, Given>(format.readPatch(plain, values, faults));
    requireValid(relation, faults);
    for (const [name, value] of stored) patch.set(format.indexOf(name), this.#earlier(value) ?? null);
    this.#add({ is: 'change', relation, key: values, patch, condition: undefined, isUnruled: true });
  }

  remove(relation: string, key: HookRow | string | number): void {
    const { format } = this.#all(relation);
    this.#add({ is: 'remove', relation, key: keyOf(format, key), condition: undefined, isUnruled: true });
  }

  stored(column: string): StoredValue {
    return new StoredValue(column);
  }

  #add(write: RowWrite): void {
    this.writes.push({ id: this.#takeId(), write });
  }

  #earlier(value: StoredValue | undefined): EarlierValue | undefined {
    return value && new EarlierValue(this.#of.id, this.#of.format.indexOf(value.column));
  }
}

function apart(row: HookRow): readonly [HookRow, ReadonlyMap<string, StoredValue>] {
  const all = Object.entries(row);
  const stored = all.flatMap(([name, value]) =>
    value instanceof StoredValue ? [[name, value] as const] : [],
  );
  return [Object.fromEntries(all.filter(([, value]) => !(value instanceof StoredValue))), new Map(stored)];
}

function requireValid(relation: string, faults: readonly RowFault[]): void {
  const [first] = faults;
  if (first !== undefined)
    throw new Error(`a hook adds a write to ${relation} that does not fit: ${first.detail}`);
}

/** The key of a row in an added write. */
function keyOf({ relation, keyIndexes }: RowFormat, given: HookRow | string | number): RowValues {
  return keyIndexes.map((i) => {
    const column = relation.columns[i];
    const value = typeof given === 'object' ? given[column?.name ?? ''] : given;
    const parsed = column && codecOf(column.type).parse(value);
    if (parsed === undefined || 'problem' in parsed)
      throw new Error(
        `a hook names a row of ${relation.name} by a key whose "${column?.name}" ${parsed?.problem}`,
      );
    return parsed.value;
  });
}
