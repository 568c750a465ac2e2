import { codecOf } from '../../relations/codecs.ts';
import type { Column, Relation, Value } from '../../relations/relation.ts';
import type { Condition } from '../../relations/rows/conditions.ts';
import {
  AGGREGATE_LIMITS,
  type Aggregate,
  AggregateLimitError,
  type AggregateRow,
  type Aggregation,
  type RowAggregates,
} from '../../relations/selections/aggregates.ts';
import { type Bound, type BoundText, name } from '../dialects/row-dialects.ts';
import {
  bestIndexed,
  ConditionWriter,
  conditionShape,
  conjuncts,
  findSeek,
  foundBy,
  MAX_MATCHES,
  requireIndexes,
  type Seek,
  seekShape,
  unsought,
} from '../relations/conditions-sql.ts';
import { ROW } from '../relations/page-sql.ts';
import type { RowEngine } from '../relations/row-engine.ts';
import type { RowListSql } from '../relations/row-lists.ts';
import type { RowSql } from '../relations/row-sql.ts';

/** Digits that an average has more than its column. */
const MORE_DIGITS = 6;

/** Aggregates of a relation's rows on either engine, which a bounded number of rows are looked at for. */
export class AggregateSql implements RowAggregates {
  readonly #sql: RowSql;
  readonly #engine: RowEngine;
  readonly #lists: RowListSql;

  constructor(sql: RowSql, engine: RowEngine, lists: RowListSql) {
    this.#sql = sql;
    this.#engine = engine;
    this.#lists = lists;
  }

  async read(aggregation: Aggregation): Promise<readonly AggregateRow[]> {
    const { group, aggregates } = aggregation;
    const seek = await this.#seek(aggregation.where);
    const statement = this.#statement(aggregation, seek);
    let rows: readonly (readonly unknown[])[];
    try {
      rows = await this.#engine.read(statement, true);
    } catch (error) {
      // A sum of doubles that is none.
      throw this.#engine.isUnfit((Object(error) as Error).cause) ? new AggregateLimitError('sum') : error;
    }
    if (rows.length > AGGREGATE_LIMITS.groups) throw new AggregateLimitError('groups');
    return rows.map((row) => {
      let next = group.length;
      const results = aggregates.map((each) => {
        const from = next;
        next += this.#expressions(each).length;
        return this.#result(each, row.slice(from, next));
      });
      return { group: group.map(({ type }, i): Value => this.#storage(type).read(row[i])), results };
    });
  }

  /** What finds the rows to look at. */
  async #seek(where: Condition): Promise<Seek> {
    requireIndexes(where);
    const { relation } = this.#sql;
    const isFew = (at: Relation, each: Seek) => this.#lists.isFew(at, each, MAX_MATCHES);
    const few = conjuncts(where).length === 0 ? undefined : await findSeek(relation, where, isFew);
    if (few !== undefined) return few;
    const { seek } = bestIndexed(relation, where);
    if (await this.#lists.isFew(relation, seek, AGGREGATE_LIMITS.scan)) return seek;
    throw new AggregateLimitError('scan');
  }

  #statement({ where, group, aggregates }: Aggregation, seek: Seek): BoundText {
    const { dialect, relation } = this.#sql;
    const rest = unsought(where, seek);
    const values: Bound[] = [];
    const terms = aggregates.map((each) => `${each.is}${'column' in each ? ` ${each.column.name}` : ''}`);
    const shape = `aggregate ${relation.table} ${terms.join()} by ${group.map((each) => each.name).join()} ${seekShape(seek, dialect, values)} ${conditionShape(rest, dialect, values)}`;
    const text = this.#lists.cached(shape, () => {
      const writer = new ConditionWriter(dialect);
      const needed = [
        ...[...group, ...aggregates.flatMap((each) => ('column' in each ? [each.column] : []))].map(
          (each) => each.name,
        ),
        ...columnsIn(rest),
      ];
      const selected = (alias: string) =>
        [...new Set(needed)].map((each) => `${alias}.${name(each)}`).join(', ') || '1';
      const from = foundBy(relation, seek, writer, { selected, limit: AGGREGATE_LIMITS.scan });
      const condition = writer.write(rest, ROW);
      const by = group.map((column) => this.#compared(column));
      const expressions = [
        ...group.map((column) => this.#groupValue(column)),
        ...aggregates.flatMap((each) => this.#expressions(each)),
      ];
      const order = by.map((each) => `(${each} IS NULL), ${each}`).join(', ');
      const grouped = by.length === 0 ? '' : ` GROUP BY ${by.join(', ')} ORDER BY ${order}`;
      return `SELECT ${expressions.join(', ')} FROM ${from} AS ${ROW} WHERE ${condition}${grouped} LIMIT ${AGGREGATE_LIMITS.groups + 1}`;
    });
    return { text, values };
  }

  #storage(type: Column['type']) {
    return this.#sql.dialect.storage(type);
  }

  #compared({ name: column, type }: Column): string {
    return this.#storage(type).compared(`${ROW}.${name(column)}`);
  }

  /** The value of a group: of texts that are the same in either case the first one. */
  #groupValue(column: Column): string {
    const own = `${ROW}.${name(column.name)}`;
    const { type } = column;
    return this.#storage(type).select(type.kind === 'text' && type.fold ? `min(${own})` : own);
  }

  /** The expressions from which a result is made. */
  #expressions(aggregate: Aggregate): readonly string[] {
    if (aggregate.is === 'count') return ['count(*)'];
    const { is, column } = aggregate;
    const { type } = column;
    const own = `${ROW}.${name(column.name)}`;
    if (is === 'countDistinct') return [`count(DISTINCT ${this.#compared(column)})`];
    if (is === 'sum' || is === 'avg') {
      const count = `count(${own})`;
      if (type.kind === 'number') return [count, `sum(${own})`];
      const { summed = (value: string) => value } = this.#storage(type);
      return [count, ...this.#sql.dialect.sums(summed(own))];
    }
    const { select } = this.#storage(type);
    // Not each version of PostgreSQL compares UUIDs in aggregates.
    return [type.kind === 'uuid' ? `${is}(${select(own)})` : select(`${is}(${own})`)];
  }

  /** The JSON of a result. */
  #result(aggregate: Aggregate, [first, ...sums]: readonly unknown[]): string {
    if (aggregate.is === 'count' || aggregate.is === 'countDistinct') return String(Number(first));
    const { is, column } = aggregate;
    const { type } = column;
    if (is === 'min' || is === 'max') {
      const value = this.#storage(type).read(first);
      return value === null ? 'null' : codecOf(type).format(value);
    }
    const count = Number(first);
    if (count === 0) return 'null';
    if (type.kind === 'number') {
      const sum = Number(sums[0]);
      const result = is === 'sum' ? sum : sum / count;
      if (!Number.isFinite(result)) throw new AggregateLimitError('sum');
      return String(result);
    }
    const sum = exactSum(sums);
    const scale = type.kind === 'decimal' ? type.scale : 0;
    if (is === 'avg') return `"${withPoint(average(sum, count), scale + MORE_DIGITS)}"`;
    if (type.kind === 'decimal' || type.kind === 'bigint') return `"${withPoint(sum, scale)}"`;
    if (!Number.isSafeInteger(Number(sum))) throw new AggregateLimitError('sum');
    return String(sum);
  }
}

/** The sum of what `sums` selects: one text with all digits, or two halves of 32 bits. */
function exactSum([high, low]: readonly unknown[]): bigint {
  if (low === undefined) return BigInt(String(high).replace('.', ''));
  return BigInt(high as number) * 2n ** 32n + BigInt(low as number);
}

/** The average with more digits, rounded to the nearest; halves away from zero. */
function average(sum: bigint, count: number): bigint {
  const scaled = sum * 10n ** BigInt(MORE_DIGITS) * 2n;
  const divisor = BigInt(count) * 2n;
  const half = BigInt(count) * (sum < 0n ? -1n : 1n);
  return (scaled + half) / divisor;
}

/** A number in digits, the last `scale` of which stand behind the point. */
function withPoint(number: bigint, scale: number): string {
  if (scale === 0) return String(number);
  const digits = String(number < 0n ? -number : number).padStart(scale + 1, '0');
  return `${number < 0n ? '-' : ''}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

/** The columns of the relation itself that a condition compares. */
function columnsIn(condition: Condition): readonly string[] {
  switch (condition.is) {
    case 'and':
    case 'or':
      return condition.all.flatMap(columnsIn);
    case 'not':
      return columnsIn(condition.condition);
    case 'some':
    case 'none':
    case 'every':
      return condition.on.map(([here]) => here);
    default:
      return [condition.column.name];
  }
}
