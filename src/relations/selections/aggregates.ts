import { HttpProblem } from '@portico/transport';
import { didYouMean, quote } from '../../core/text.ts';
import { codecOf } from '../codecs.ts';
import type { Column, Relation, Value } from '../relation.ts';
import {
  type ColumnGuard,
  type Condition,
  type Filter,
  invalidParameter,
  joined,
  type Relations,
  readFilter,
  readWhere,
} from '../rows/conditions.ts';

/** What an aggregate makes of the values of a column; `count` counts rows. */
export type AggregateFunction = 'count' | 'countDistinct' | 'sum' | 'avg' | 'min' | 'max';

/** One value for each group of rows. */
export type Aggregate =
  | { readonly is: 'count' }
  | { readonly is: Exclude<AggregateFunction, 'count'>; readonly column: Column };

/** Aggregates of the rows that meet a condition, for each group of equal values. */
export interface Aggregation {
  readonly where: Condition;
  /** Without columns all rows are one group. */
  readonly group: readonly Column[];
  readonly aggregates: readonly Aggregate[];
}

/** A group with its aggregates. */
export interface AggregateRow {
  readonly group: readonly Value[];
  /** The JSON of each aggregate. */
  readonly results: readonly string[];
}

/** Aggregates of the rows of a relation. */
export interface RowAggregates {
  /**
   * The groups in the order of their values, nulls last. Fails with AggregateLimitError, UnindexedListError and
   * StoreUnavailableError.
   */
  read(aggregation: Aggregation): Promise<readonly AggregateRow[]>;
}

/** The limits of aggregates, named in refusals. */
export const AGGREGATE_LIMITS = {
  /** Rows that are looked at. */
  scan: 1_000_000,
  groups: 1_000,
  /** Columns of a group. */
  columns: 3,
  aggregates: 20,
} as const;

/** Aggregates reach a limit; `sum` is a sum of numbers that JSON cannot write with all digits. */
export class AggregateLimitError extends Error {
  override readonly name = 'AggregateLimitError';
  readonly limit: 'scan' | 'groups' | 'sum';

  constructor(limit: AggregateLimitError['limit']) {
    super(`Aggregates exceed a limit (${limit})`);
    this.limit = limit;
  }
}

const FUNCTIONS: readonly AggregateFunction[] = ['count', 'countDistinct', 'sum', 'avg', 'min', 'max'];

/** Parameters of pages, which groups do not have. */
const PAGING: readonly string[] = ['limit', 'cursor', 'sort', 'fields'];

/** Reads `aggregate=count,sum(price)` and `group` with filters; either may be absent. Throws HttpProblem. */
export function readAggregation(
  relations: Relations,
  relation: Relation,
  query: Readonly<Record<string, unknown>>,
  guard?: ColumnGuard,
): Aggregation {
  const found: Filter[] = [];
  let group: readonly Column[] = [];
  let aggregates: readonly Aggregate[] = [];
  for (const [name, given] of Object.entries(query)) {
    const values = [given].flat().map(String);
    const only = () => {
      const [value = '', ...more] = values;
      if (more.length > 0) throw invalidParameter(name, `"${name}" takes one value`);
      return value;
    };
    if (name === 'aggregate') aggregates = readAggregates(relation, only());
    else if (name === 'group') group = readGroup(relation, only());
    else if (name === 'where') found.push(readWhere(relations, relation, only(), { guard }));
    else if (PAGING.includes(name) || name.startsWith('embed.')) {
      throw invalidParameter(name, `"${name}" does not go with "aggregate"`);
    } else
      found.push(
        readFilter(relations, relation, name, values, { others: ['aggregate', 'group', 'where'], guard }),
      );
  }
  const hidden = group.find(({ name }) => aggregates.some(({ is }) => is === name));
  if (hidden !== undefined)
    throw invalidParameter(
      'group',
      `"group" cannot have ${quote(hidden.name)} beside the function of that name`,
    );
  const where = joined(relations, relation, found);
  return checkedAggregation(relation, { where, group, aggregates }, { guard });
}

/** Holds aggregates within the limits, and refuses columns that the caller may not read. Throws HttpProblem. */
export function checkedAggregation(
  relation: Relation,
  aggregation: Aggregation,
  {
    guard,
    group: groupName = 'group',
  }: {
    readonly guard?: ColumnGuard | undefined;
    /** What the columns of groups were read from. */
    readonly group?: string;
  },
): Aggregation {
  const { group, aggregates } = aggregation;
  const { columns, aggregates: functions } = AGGREGATE_LIMITS;
  if (new Set(group).size < group.length)
    throw invalidParameter(groupName, `"${groupName}" takes each column at most once`);
  if (group.length > columns) throw tooMuch(groupName, `at most ${columns} columns (columns)`);
  if (aggregates.length > functions)
    throw tooMuch('aggregate', `at most ${functions} functions (aggregates)`);
  for (const column of group) guard?.requireReadable(groupName, relation, column);
  for (const each of aggregates) {
    if ('column' in each) guard?.requireReadable('aggregate', relation, each.column);
  }
  return aggregation;
}

function readGroup(relation: Relation, text: string): readonly Column[] {
  return text.split(',').map((name) => columnOf(relation, name, 'group', isGroup));
}

function readAggregates(relation: Relation, text: string): readonly Aggregate[] {
  const found: Aggregate[] = [];
  // Terms are functions, perhaps with columns in parentheses.
  for (const term of text.match(/[^,()]*(?:\([^()]*\)?)?[^,]*/g)?.filter((each) => each !== '') ?? []) {
    const [, name = '', columns] = /^(\w+)(?:\(([^()]*)\))?$/.exec(term) ?? [];
    const is = FUNCTIONS.find((each) => each === name);
    if (is === undefined) {
      const proposal = didYouMean(name === '' ? term : name, FUNCTIONS);
      const known = FUNCTIONS.map((each) => (each === 'count' ? each : `${each}(column)`)).join(', ');
      const message = `"aggregate" takes ${known} with commas between, not ${quote(term)}${proposal}`;
      throw invalidParameter('aggregate', message);
    }
    if (is === 'count') {
      if (columns !== undefined)
        throw invalidParameter('aggregate', '"aggregate" takes count without a column; it counts rows');
      found.push({ is });
      continue;
    }
    if (columns === undefined)
      throw invalidParameter(
        'aggregate',
        `"aggregate" needs a column for ${is}, such as ${is}(${example(relation, is)})`,
      );
    for (const column of columns.split(',')) {
      found.push({ is, column: columnOf(relation, column, 'aggregate', ({ kind }) => takes(is, kind), is) });
    }
  }
  const names = found.map((each) => JSON.stringify([each.is, 'column' in each ? each.column.name : '']));
  if (found.length === 0) throw invalidParameter('aggregate', '"aggregate" needs a function, such as count');
  if (new Set(names).size < names.length)
    throw invalidParameter('aggregate', '"aggregate" takes each function of a column at most once');
  return found;
}

const NUMBERS: readonly string[] = ['serial', 'integer', 'bigint', 'decimal', 'number'];

/** Whether a function takes a type of columns. */
export function takes(is: AggregateFunction, kind: Column['type']['kind']): boolean {
  if (is === 'sum' || is === 'avg') return NUMBERS.includes(kind);
  if (is === 'countDistinct') return kind !== 'json';
  return kind !== 'json' && kind !== 'bytes' && kind !== 'boolean';
}

/** Whether rows can be grouped by a type of columns. */
export function isGroup({ kind }: Column['type']): boolean {
  return kind !== 'json';
}

/** A column that a function takes, for a message. */
function example({ columns }: Relation, is: AggregateFunction): string {
  return columns.find(({ type }) => takes(is, type.kind))?.name ?? 'column';
}

function columnOf(
  { name: relation, columns }: Relation,
  name: string,
  parameter: string,
  isTaken: (type: Column['type']) => boolean,
  what = parameter,
): Column {
  const found = columns.find((each) => each.name === name);
  if (found !== undefined && isTaken(found.type)) return found;
  const known = columns.filter(({ type }) => isTaken(type)).map((each) => each.name);
  const message =
    found === undefined
      ? `"${parameter}" names ${quote(name)}, which ${relation} does not have${didYouMean(name, known)}`
      : `"${parameter}" takes no column of ${found.type.kind} for ${what}, such as ${quote(name)}`;
  throw invalidParameter(parameter, message);
}

function tooMuch(parameter: string, what: string): HttpProblem {
  const message = `"${parameter}" takes ${what}`;
  return new HttpProblem(400, 'LIMIT_EXCEEDED', message, { reasons: [{ detail: message, parameter }] });
}

/** The refusal of aggregates that reach a limit. */
export function aggregateProblem({ limit }: AggregateLimitError): HttpProblem {
  const [parameter, message] = {
    scan: [
      'aggregate',
      `Aggregates look at ${AGGREGATE_LIMITS.scan.toLocaleString('en-US')} rows at most (scan); add a narrower filter that an index serves`,
    ],
    groups: [
      'group',
      `There are more than ${AGGREGATE_LIMITS.groups.toLocaleString('en-US')} groups (groups); group by a column with fewer values, or add a filter`,
    ],
    sum: [
      'aggregate',
      'A sum is beyond the numbers that JSON writes with all digits (sum); add a narrower filter',
    ],
  }[limit] as [string, string];
  return new HttpProblem(400, 'LIMIT_EXCEEDED', message, { reasons: [{ detail: message, parameter }] });
}

/** The JSON of groups: `[{"author_id":1,"count":7,"sum":{"price":"39.62"}}]`. */
export function aggregateJson({ group, aggregates }: Aggregation, rows: readonly AggregateRow[]): string {
  const functions = [...Map.groupBy(aggregates.entries(), ([, { is }]) => is)];
  const texts = rows.map(({ group: values, results }) => {
    const own = group.map(({ name, type }, i) => {
      const value = values[i] ?? null;
      return `${JSON.stringify(name)}:${value === null ? 'null' : codecOf(type).format(value)}`;
    });
    const others = functions.map(([is, all]) => {
      const members = all.map(([nth, each]) => {
        const result = results[nth] ?? 'null';
        return 'column' in each ? `${JSON.stringify(each.column.name)}:${result}` : result;
      });
      return `"${is}":${is === 'count' ? members.join() : `{${members.join()}}`}`;
    });
    return `{${[...own, ...others].join()}}`;
  });
  return `[${texts.join()}]`;
}
