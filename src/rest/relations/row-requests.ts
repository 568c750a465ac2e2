import { HttpProblem, type RequestContext } from '@portico/transport';
import { preferences } from '../../core/negotiation.ts';
import { didYouMean, folded, quote } from '../../core/text.ts';
import { MAX_FAULTS, sizeOfRow } from '../../relations/given-values.ts';
import { type Column, isComputed, type Relation } from '../../relations/relation.ts';
import {
  type ColumnGuard,
  type Condition,
  invalidParameter,
  type Relations,
} from '../../relations/rows/conditions.ts';
import { faultCode, listedFaults, toldFaults } from '../../relations/rows/faults.ts';
import { readRowList } from '../../relations/rows/row-lists.ts';
import type { RowFault, RowFormat, RowKey, RowValues } from '../../relations/rows/rows.ts';
import {
  type Given,
  type PutColumns,
  type PutRule,
  type Upsert,
  type UpsertRule,
  uniqueOf,
} from '../../relations/rows/writes.ts';
import type { RelationView } from '../../relations/rules/views.ts';
import type { WriteCondition } from '../../relations/user.ts';
import { NEEDS_IF_MATCH, writeCondition } from '../messages.ts';

/** The head of a request that writes a row: that of an HTTP request, or of one in a batch. */
export interface WriteHead extends Pick<RequestContext, 'headers' | 'query'> {
  /** The name of the caller, for columns with the default `caller`. */
  readonly caller: string | undefined;
  /** The columns of the row that get their values later; they are null until then. */
  readonly later?: ReadonlySet<string>;
  /** What the caller may do with the relation; undefined without rules. */
  readonly view?: RelationView | undefined;
}

/** Reads requests that write rows of a relation. */
export class RowRequests {
  readonly format: RowFormat;
  readonly #requireIfMatch: boolean;

  constructor(format: RowFormat, requireIfMatch: boolean) {
    this.format = format;
    this.#requireIfMatch = requireIfMatch;
  }

  /** The condition of a write to one row. Throws HttpProblem if it needs one. */
  condition(head: WriteHead): WriteCondition | undefined {
    refuseParameters(head);
    const condition = writeCondition(head, this.format.relation);
    if (condition === undefined && this.#requireIfMatch) throw NEEDS_IF_MATCH;
    return condition;
  }

  /** What a put does with a row that is there or is missing. */
  putRule(head: WriteHead): PutRule {
    refuseParameters(head);
    const replaces = head.headers['if-none-match']?.trim() !== '*';
    const condition = replaces ? this.condition(head) : undefined;
    return { condition, replaces, creates: this.format.clientsGiveKeys && condition === undefined };
  }

  /** The upsert that `on` asks for; undefined without it. Throws HttpProblem. */
  upsertRule({ query, headers, view }: WriteHead): UpsertRule | undefined {
    const { relation } = this.format;
    for (const name in query) {
      if (name === 'on') continue;
      const message = `There is no parameter ${quote(name)} for a create${didYouMean(name, ['on'])}`;
      throw invalidParameter(name, message);
    }
    if (query.on === undefined) return undefined;
    const names = String(query.on).split(',');
    const on = uniqueOf(relation, names);
    if (on === undefined) {
      const known = [relation.key, ...relation.unique].map((columns) => columns.join());
      const message = `"on" takes the columns of the key or of a unique of ${relation.name} (${known.join('; ')}), not ${quote(names.join())}`;
      throw invalidParameter('on', message);
    }
    const hidden = on.find((column) => view?.readable?.includes(this.format.indexOf(column)) === false);
    if (hidden !== undefined) {
      const message = `"on" names "${hidden}", which the caller may not read in rows of ${relation.name}`;
      throw new HttpProblem(403, 'NOT_ALLOWED', message, { reasons: [{ detail: message, parameter: 'on' }] });
    }
    if (headers['if-match'] !== undefined || headers['if-unmodified-since'] !== undefined) {
      const message =
        '"on" takes no If-Match: an upsert also creates rows; use PATCH for a row that you know';
      throw invalidParameter('on', message);
    }
    const resolution = preferences({ headers }).get('resolution') ?? 'merge';
    if (resolution !== 'merge' && resolution !== 'ignore') {
      throw invalidParameter('on', `Prefer: resolution takes merge or ignore, not ${quote(resolution)}`);
    }
    return { on, resolution };
  }

  /** Reads new rows, with all faults of all of them. */
  rows(head: WriteHead, given: readonly unknown[], pointer: (row: number) => string): readonly RowValues[] {
    const faults: RowFault[] = [];
    let bytes = 0;
    const rows: RowValues[] = [];
    for (const [i, each] of given.entries()) {
      const row = this.row(head, each, pointer(i), faults);
      if (faults.length >= MAX_FAULTS.listed) break;
      bytes += sizeOfRow(row);
      if (bytes > MAX_ROW_BYTES) throw tooLarge();
      rows.push(row);
    }
    if (faults.length > 0) throw invalidRow(faults);
    return rows;
  }

  /** Reads a new row, and adds its faults. `key` is the key in the path. */
  row(
    { caller, later, view }: WriteHead,
    given: unknown,
    at: string,
    faults: RowFault[],
    key?: RowKey,
  ): RowValues {
    return this.format.readRow(given, { at, caller, later, view, faults, ...(key !== undefined && { key }) });
  }

  /** The columns that a put changes in a row that is there, and those that it must leave as they are. */
  putColumns({ view }: WriteHead, given: unknown): PutColumns {
    const { relation } = this.format;
    if (view === undefined || relation.columns.every(({ rules }) => rules === undefined)) return {};
    const others = relation.columns.flatMap((column, i) =>
      relation.key.includes(column.name) || isComputed(column)
        ? []
        : [{ i, column, isFixed: isFixed(view, column) }],
    );
    return {
      replaced: others.flatMap(({ i, isFixed: fixed }) => (fixed ? [] : [i])),
      same: others.flatMap(({ i, column, isFixed: fixed }) =>
        fixed && Object.hasOwn(Object(given) as object, column.name) ? [i] : [],
      ),
    };
  }

  /** Reads rows to be upserted, with all faults of all of them. Two of them must not be the same row. */
  upserts(
    head: WriteHead,
    given: readonly unknown[],
    rule: UpsertRule,
    pointer: (row: number) => string,
  ): readonly Upsert[] {
    const faults: RowFault[] = [];
    const upserts: Upsert[] = [];
    let bytes = 0;
    for (const [i, each] of given.entries()) {
      const upsert = this.upsert(head, each, rule, pointer(i), faults);
      if (faults.length >= MAX_FAULTS.listed) throw invalidRow(faults);
      bytes += sizeOfRow(upsert.row);
      if (bytes > MAX_ROW_BYTES) throw tooLarge();
      upserts.push(upsert);
    }
    const first = new Map<string, number>();
    for (const [i, { row }] of upserts.entries()) {
      if (row.length === 0) continue;
      const text = JSON.stringify(rule.on.map((column) => this.#comparable(column, row as RowValues)));
      const other = first.get(text);
      if (other === undefined) {
        first.set(text, i);
        continue;
      }
      const detail = `rows ${other} and ${i} have the same ${rule.on.join(' and ')}, and one request writes a row once`;
      faults.push({ detail, pointer: pointer(other) }, { detail, pointer: pointer(i) });
    }
    if (faults.length > 0) throw invalidRow(faults);
    return upserts;
  }

  /** Reads a row to be upserted, and adds its faults. */
  upsert(
    { caller, later, view }: WriteHead,
    given: unknown,
    rule: UpsertRule,
    at: string,
    faults: RowFault[],
  ): Upsert {
    return this.format.readUpsert(given, rule, { at, caller, later, faults, view });
  }

  /** A value as a text that is the same for values that are equal. */
  #comparable(name: string, row: RowValues): string {
    const index = this.format.indexOf(name);
    const type = this.format.relation.columns[index]?.type;
    const value = row[index] ?? null;
    const text = value instanceof Uint8Array ? Buffer.from(value).toString('base64') : String(value);
    return type?.kind === 'text' && type.fold ? folded(text) : text;
  }
}

/** Refuses parameters of a write to one row: it would do more than a client expects that takes them for a filter. */
function refuseParameters({ query }: WriteHead): void {
  const [name] = Object.keys(query);
  if (name === undefined) return;
  throw invalidParameter(name, `There is no parameter ${quote(name)} for a write to one row`);
}

/** Whether a column of a row that is there cannot change. */
function isFixed(view: RelationView | undefined, column: Column): boolean {
  return view?.unwritable(column, false) !== undefined;
}

/** The refusal of a write whose condition the row does not meet. */
export const CHANGED_MEANWHILE = new HttpProblem(
  412,
  'PRECONDITION_FAILED',
  'The row has been changed since, or is there already; read it again',
);

/** Bodies of more bytes take a turn of the event loop to be parsed, and another one to be read. */
const LARGE_BODY = 128 * 1024;

/** Ends the turn in which a large body was parsed. */
export async function parsed({ body }: Pick<RequestContext, 'body'>): Promise<void> {
  if (body.length <= LARGE_BODY) return;
  // The first one is due before the next input.
  await new Promise(setImmediate);
  await new Promise(setImmediate);
}

/** Maximum size of all rows of a request, those of defaults included, in bytes: that of a batch. */
export const MAX_ROW_BYTES = 4 * 1024 * 1024;

/** The refusal of rows that are larger together than a request may store. */
export function tooLarge(): HttpProblem {
  const message = `The rows of a request have at most ${MAX_ROW_BYTES} bytes with their defaults (row bytes); send the others in further requests`;
  return new HttpProblem(400, 'LIMIT_EXCEEDED', message);
}

/** The refusal of writes whose rows are larger together than a reply may be. */
export function tooManyResults(): HttpProblem {
  const message =
    'The written rows are larger together than a reply may be (reply bytes); write fewer of them at a time';
  return new HttpProblem(400, 'LIMIT_EXCEEDED', message);
}

/** The refusal of rows with faults. */
export function invalidRow(faults: readonly RowFault[]): HttpProblem {
  const code = faultCode(faults);
  const status = code === 'NOT_ALLOWED' ? 403 : 400;
  return new HttpProblem(status, code, toldFaults(faults), { reasons: listedFaults(faults) });
}

/** The rows that a deletion by a filter removes, and how many it may. Throws HttpProblem. */
export function removalOf(
  relations: Relations,
  relation: Relation,
  head: Pick<WriteHead, 'headers' | 'query'>,
  guard: ColumnGuard | undefined,
) {
  const { where, given, cursor } = readRowList(relations, relation, head.query, false, guard);
  const other = cursor === undefined ? given.find(([name]) => PAGING.has(name))?.[0] : 'cursor';
  if (other !== undefined) throw invalidParameter(other, `${quote(other)} does not go with a deletion`);
  if (isAny(where)) {
    throw invalidParameter(
      'where',
      `A deletion of rows of ${relation.name} needs a filter, or a key in the path`,
    );
  }
  if (head.headers['if-match'] !== undefined || head.headers['if-unmodified-since'] !== undefined) {
    throw invalidParameter('where', 'If-Match goes with one row, not with a filter');
  }
  return { where, max: maxAffected(head) };
}

/** Whether every row meets a condition, because it asks for nothing. */
function isAny(where: Condition): boolean {
  return where.is === 'and' && where.all.every(isAny);
}

/** The parameters of a page. */
const PAGING: ReadonlySet<string> = new Set(['limit', 'sort', 'fields']);
/** Maximum number of rows that a deletion may allow itself. */
const MAX_AFFECTED = 10_000;

/** How many rows a deletion may remove. Throws HttpProblem if it does not say it. */
function maxAffected(head: Pick<WriteHead, 'headers'>): number {
  const given = preferences(head).get('max-affected');
  if (given === undefined) {
    const message = `A deletion of many rows needs Prefer: max-affected with a number up to ${MAX_AFFECTED}; it removes none if more match`;
    throw new HttpProblem(428, 'PRECONDITION_REQUIRED', message);
  }
  if (!/^\d+$/.test(given)) {
    throw invalidParameter('Prefer', `Prefer: max-affected takes a number, not ${quote(given)}`);
  }
  if (Number(given) <= MAX_AFFECTED) return Number(given);
  throw new HttpProblem(400, 'LIMIT_EXCEEDED', `Prefer: max-affected takes at most ${MAX_AFFECTED}`);
}

/** A row with values that stand for those of earlier writes. */
export function withEarlier(
  relation: Relation,
  row: readonly Given[],
  earlier: ReadonlyMap<string, Given>,
): readonly Given[] {
  return row.map((value, i) => earlier.get(relation.columns[i]?.name ?? '') ?? value);
}
