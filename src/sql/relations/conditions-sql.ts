import { folded } from '../../core/text.ts';
import type { Column, Relation } from '../../relations/relation.ts';
import type { Condition } from '../../relations/rows/conditions.ts';
import { type Bound, name, type RowDialect } from './row-sql.ts';

/** The last code point of Unicode: no text with a prefix sorts after the prefix followed by it. */
const LAST_CHARACTER = '\u{10ffff}';

const SIGNS = { eq: '=', lt: '<', lte: '<=', gt: '>', gte: '>=' } as const;

/**
 * The shape of a condition: what its SQL depends on. Appends its values to `values`, in the order in which
 * `conditionText` numbers them.
 */
export function conditionShape(condition: Condition, dialect: RowDialect, values: Bound[]): string {
  switch (condition.is) {
    case 'and':
    case 'or':
      return `${condition.is}(${condition.all.map((each) => conditionShape(each, dialect, values)).join()})`;
    case 'not':
      return `not(${conditionShape(condition.condition, dialect, values)})`;
    case 'some':
    case 'none':
    case 'every': {
      const { is, relation, on } = condition;
      const inside = conditionShape(condition.condition, dialect, values);
      return `${is} ${relation.name} ${on.flat().join(' ')}(${inside})`;
    }
    case 'null':
      return `${condition.isNull ? 'null' : 'some'} ${condition.column.name}`;
    case 'in': {
      const { column } = condition;
      values.push(
        dialect.listOf(
          condition.values.map((value) => dialect.storage(column.type).bind(value)),
          folds(column),
        ),
      );
      return `in ${column.name}`;
    }
    case 'prefix':
      values.push(condition.text, condition.text + LAST_CHARACTER);
      return `prefix ${condition.column.name}`;
    case 'contains':
      values.push(folds(condition.column) ? folded(condition.text) : condition.text);
      return `contains ${condition.column.name}`;
    default:
      values.push(dialect.storage(condition.column.type).bind(condition.value));
      return `${condition.is} ${condition.column.name}`;
  }
}

function folds({ type }: Column): boolean {
  return type.kind === 'text' && type.fold;
}

/** Writes the SQL of conditions; the parameters are numbered from `first` on. */
export class ConditionWriter {
  readonly #dialect: RowDialect;
  #parameters: number;
  #aliases = 0;

  constructor(dialect: RowDialect, first = 1) {
    this.#dialect = dialect;
    this.#parameters = first - 1;
  }

  /** The number of the next parameter. */
  next(): number {
    return ++this.#parameters;
  }

  /** The SQL of a condition on the rows of a table by its alias; null stands for false. */
  write(condition: Condition, alias: string): string {
    switch (condition.is) {
      case 'and':
        if (condition.all.length === 0) return '1 = 1';
        return `(${condition.all.map((each) => this.write(each, alias)).join(' AND ')})`;
      case 'or':
        if (condition.all.length === 0) return '1 = 0';
        return `(${condition.all.map((each) => this.write(each, alias)).join(' OR ')})`;
      case 'not':
        return this.#not(this.write(condition.condition, alias));
      case 'some':
        return this.#exists(condition, alias, (inside) => inside);
      case 'none':
        return `NOT ${this.#exists(condition, alias, (inside) => inside)}`;
      case 'every':
        return `NOT ${this.#exists(condition, alias, (inside) => this.#not(inside))}`;
      default:
        return this.#leaf(condition, `${alias}.${name(condition.column.name)}`);
    }
  }

  #leaf(condition: Extract<Condition, { readonly column: Column }>, column: string): string {
    const { type } = condition.column;
    const storage = this.#dialect.storage(type);
    const compared = storage.compared(column);
    const parameter = () => storage.compared(this.#dialect.parameter(this.next(), storage.type));
    switch (condition.is) {
      case 'null':
        return `${column} IS ${condition.isNull ? '' : 'NOT '}NULL`;
      case 'in':
        return this.#dialect.isIn(compared, this.next(), storage.type);
      case 'prefix':
        return `(${compared} >= ${parameter()} AND ${compared} < ${parameter()})`;
      case 'contains':
        return this.#dialect.contains(
          column,
          this.#dialect.parameter(this.next(), storage.type),
          folds(condition.column),
        );
      case 'ne':
        return `(${compared} <> ${parameter()} OR ${column} IS NULL)`;
      default:
        return `${compared} ${SIGNS[condition.is]} ${parameter()}`;
    }
  }

  #not(condition: string): string {
    return `NOT coalesce(${condition}, ${this.#dialect.no})`;
  }

  #exists(
    { relation, on, condition }: Extract<Condition, { readonly on: unknown }>,
    alias: string,
    inside: (text: string) => string,
  ): string {
    const other = `x${++this.#aliases}`;
    const pairs = on.map(([here, there]) => `${other}.${name(there)} = ${alias}.${name(here)}`);
    const where = [...pairs, inside(this.write(condition, other))].join(' AND ');
    return `EXISTS (SELECT 1 FROM ${name(relation.table)} AS ${other} WHERE ${where})`;
  }
}

/** The conditions of which a row must meet each. */
export function conjuncts(condition: Condition): readonly Condition[] {
  return condition.is === 'and' ? condition.all.flatMap(conjuncts) : [condition];
}

/** An index of a relation: its columns, and whether no two rows have the same values of them. */
interface Index {
  readonly columns: readonly string[];
  readonly isUnique: boolean;
}

/** The indexes of a relation; its references have one each. */
export function indexesOf({ key, unique, indexes, references }: Relation): readonly Index[] {
  return [
    { columns: key, isUnique: true },
    ...unique.map((columns) => ({ columns, isUnique: true })),
    ...indexes.map((columns) => ({ columns, isUnique: false })),
    ...references.map(({ columns }) => ({ columns, isUnique: false })),
  ];
}
