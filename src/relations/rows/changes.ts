import { folded } from '../../core/text.ts';
import { codecOf } from '../codecs.ts';
import { type ChangeType, changeName, type EventPosition, type RelationEvent } from '../events.ts';
import type { Column, Value } from '../relation.ts';
import type { Condition, Relations } from './conditions.ts';

/** A change as it is stored. */
export interface StoredChange extends EventPosition {
  readonly relation: string;
  readonly type: ChangeType;
  /** The row as JSON, as an engine writes it, or an array of the row after and before an update. */
  readonly row: string;
  /** The names of members that are in hexadecimal digits instead of base64. */
  readonly hex: readonly string[];
}

type StoredRow = Record<string, unknown>;

/**
 * The event of a stored change. The row keeps the columns that it had at the time of the change; those that were
 * renamed since, and the relation, have the names of today.
 */
export function relationEvent(relations: Relations, stored: StoredChange): RelationEvent {
  const { position, at, type, hex } = stored;
  // Engines write numbers in several ways, and spaces.
  const [found = {}, former] = [JSON.parse(stored.row) as StoredRow | readonly StoredRow[]].flat();
  for (const each of [found, former ?? {}]) {
    for (const name of hex) {
      const digits = each[name];
      if (typeof digits === 'string') each[name] = Buffer.from(digits, 'hex').toString('base64');
    }
  }
  const declared =
    relations.get(stored.relation) ?? [...relations.values()].find(({ was }) => was === stored.relation);
  const relation = declared?.name ?? stored.relation;
  const named = (members: StoredRow) =>
    declared === undefined ? members : withNames(members, declared.columns);
  const row = named(found);
  const key = (declared?.key ?? []).map((name) => encodeURIComponent(String(row[name] ?? ''))).join();
  const name = declared === undefined ? type : changeName(declared, type);
  return {
    position,
    at,
    relation,
    type,
    name,
    key,
    json: JSON.stringify({ position, relation, type, key, row }),
    ...(former !== undefined && former !== null && { before: JSON.stringify(named(former)) }),
  };
}

/** A row whose renamed columns have their names of today. */
function withNames(row: Record<string, unknown>, columns: readonly Column[]): Record<string, unknown> {
  const renamed = columns.filter(({ name, was }) => was !== undefined && was in row && !(name in row));
  if (renamed.length === 0) return row;
  const names = new Map(renamed.map(({ name, was }) => [was, name]));
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [names.get(name) ?? name, value]));
}

/** Whether a condition concerns nothing but the row itself. */
export function isOfRowAlone(condition: Condition): boolean {
  switch (condition.is) {
    case 'and':
    case 'or':
      return condition.all.every(isOfRowAlone);
    case 'not':
      return isOfRowAlone(condition.condition);
    case 'some':
    case 'none':
    case 'every':
      return false;
    default:
      return true;
  }
}

/** Whether the row of an event meets a condition on the row alone, as an engine would decide. */
export function isMet({ json }: RelationEvent, condition: Condition): boolean {
  if (condition.is === 'and' && condition.all.length === 0) return true;
  const { row } = JSON.parse(json) as { readonly row: Readonly<Record<string, unknown>> };
  return isMetBy(row, condition);
}

/** Whether the members of a row meet a condition on the row alone. */
export function isMetBy(row: Readonly<Record<string, unknown>>, condition: Condition): boolean {
  return holds(condition, (column) => memberOf(row, column));
}

/** A value of a row; null for one that the column no longer allows. */
function memberOf(row: Readonly<Record<string, unknown>>, { name, type }: Column): Value {
  const given = row[name] ?? null;
  if (given === null) return null;
  // A JSON text of a decimal or a bigint is read exactly.
  const parsed = codecOf(type).parse(given);
  return 'value' in parsed ? parsed.value : null;
}

/** Whether values meet a condition on the row alone, as an engine would decide. */
export function holds(condition: Condition, valueIn: (column: Column) => Value): boolean {
  switch (condition.is) {
    case 'and':
      return condition.all.every((each) => holds(each, valueIn));
    case 'or':
      return condition.all.some((each) => holds(each, valueIn));
    case 'not':
      return !holds(condition.condition, valueIn);
    case 'some':
    case 'none':
    case 'every':
      throw new Error('the condition concerns rows of other relations');
    default:
      return meets(condition, valueIn(condition.column));
  }
}

function meets(condition: Extract<Condition, { readonly column: Column }>, value: Value): boolean {
  const { column } = condition;
  if (condition.is === 'null') return (value === null) === condition.isNull;
  if (value === null) return condition.is === 'ne';
  const { compare } = codecOf(column.type);
  switch (condition.is) {
    case 'in':
      return condition.values.some((each) => compare(value, each) === 0);
    case 'prefix':
    case 'contains': {
      const isFolded = column.type.kind === 'text' && column.type.fold;
      const [text, part] = [String(value), condition.text].map((each) => (isFolded ? folded(each) : each));
      return condition.is === 'prefix'
        ? text?.startsWith(part ?? '') === true
        : text?.includes(part ?? '') === true;
    }
    case 'eq':
      return compare(value, condition.value) === 0;
    case 'ne':
      return compare(value, condition.value) !== 0;
    case 'lt':
      return compare(value, condition.value) < 0;
    case 'lte':
      return compare(value, condition.value) <= 0;
    case 'gt':
      return compare(value, condition.value) > 0;
    case 'gte':
      return compare(value, condition.value) >= 0;
  }
}
