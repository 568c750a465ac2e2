import { folded } from '../../core/text.ts';
import type { ColumnType, Expression, ExpressionFunction, Value } from '../relation.ts';

/** The functions of computed columns. */
export const FUNCTIONS: readonly ExpressionFunction[] = [
  ...(['concat', 'lower', 'upper', 'length'] as const),
  ...(['add', 'subtract', 'multiply', 'coalesce'] as const),
];

/** The names of the columns that an expression reads. */
export function columnsRead(expression: Expression): readonly string[] {
  if (expression.is === 'column') return [expression.name];
  return expression.is === 'constant' ? [] : [...new Set(expression.of.flatMap(columnsRead))];
}

/** The digits behind the point of a number; undefined for other types. */
export function scaleOf(type: ColumnType): number | undefined {
  if (type.kind === 'decimal') return type.scale;
  return type.kind === 'integer' || type.kind === 'bigint' ? 0 : undefined;
}

/** A number in units of its last digit. */
export function unitsOf(value: number | bigint | string): bigint {
  return BigInt(String(value).replace('.', ''));
}

/** The number that a type has for units of its last digit. */
export function numberOf(units: bigint, type: ColumnType): Value {
  if (type.kind === 'integer') return Number(units);
  const scale = scaleOf(type) ?? 0;
  if (type.kind !== 'decimal' || scale === 0) return type.kind === 'decimal' ? String(units) : units;
  const digits = String(units < 0n ? -units : units).padStart(scale + 1, '0');
  return `${units < 0n ? '-' : ''}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

/** The value of an expression as both engines store it. */
export function computedValue(expression: Expression, valueIn: (column: string) => Value): Value {
  switch (expression.is) {
    case 'column':
      return valueIn(expression.name);
    case 'constant':
      return expression.value;
    case 'coalesce': {
      for (const part of expression.of) {
        const value = computedValue(part, valueIn);
        if (value !== null)
          return scaleOf(part.type) === undefined ? value : converted(value, part.type, expression.type);
      }
      return null;
    }
    case 'concat':
    case 'lower':
    case 'upper':
    case 'length': {
      const values = expression.of.map((part) => computedValue(part, valueIn));
      if (values.includes(null)) return null;
      const text = values.map(String).join('');
      if (expression.is === 'concat') return text;
      if (expression.is === 'lower') return folded(text);
      return expression.is === 'upper'
        ? text.replace(/[a-z]+/g, (each) => each.toUpperCase())
        : [...text].length;
    }
    default:
      return calculated(expression.is, expression.of, expression.type, valueIn);
  }
}

function converted(value: NonNullable<Value>, from: ColumnType, to: ColumnType): Value {
  const shift = (scaleOf(to) ?? 0) - (scaleOf(from) ?? 0);
  return numberOf(unitsOf(value as number | bigint | string) * 10n ** BigInt(shift), to);
}

function calculated(
  is: 'add' | 'subtract' | 'multiply',
  of: readonly Expression[],
  type: ColumnType,
  valueIn: (column: string) => Value,
): Value {
  let result: bigint | undefined;
  for (const part of of) {
    const value = computedValue(part, valueIn);
    if (value === null) return null;
    const units = unitsOf(value as number | bigint | string);
    const shift = is === 'multiply' ? 0 : (scaleOf(type) ?? 0) - (scaleOf(part.type) ?? 0);
    const operand = units * 10n ** BigInt(shift);
    if (result === undefined) result = operand;
    else result = is === 'add' ? result + operand : is === 'subtract' ? result - operand : result * operand;
  }
  return numberOf(result ?? 0n, type);
}

/** The columns of a row whose values are computed from the others, in their order. */
interface ComputedRow {
  readonly columns: readonly { readonly name: string; readonly computed?: Expression | undefined }[];
}

/** A row with its computed columns; the same if there are none. */
export function withComputed({ columns }: ComputedRow, row: readonly Value[]): readonly Value[] {
  if (!columns.some(({ computed }) => computed !== undefined)) return row;
  const valueIn = (name: string) => row[columns.findIndex((each) => each.name === name)] ?? null;
  return columns.map(({ computed }, i) =>
    computed === undefined ? (row[i] ?? null) : computedValue(computed, valueIn),
  );
}

type Engine = 'sqlite' | 'postgres';

/** An expression in SQL. SQLite has decimals in units of their last digit. */
export function expressionSql(engine: Engine, expression: Expression): string {
  const write = (part: Expression) => expressionSql(engine, part);
  switch (expression.is) {
    case 'column':
      return `"${expression.name.replaceAll('"', '""')}"`;
    case 'constant':
      return constantSql(engine, expression.value, expression.type);
    case 'concat':
      return `(${expression.of.map((part) => textSql(write(part), part.type)).join(' || ')})`;
    case 'lower':
    case 'upper': {
      const text = expression.of.map(write).join();
      return `${expression.is}(${text}${engine === 'postgres' ? ' COLLATE "C"' : ''})`;
    }
    case 'length':
      return engine === 'postgres'
        ? `CAST(length(${expression.of.map(write).join()}) AS bigint)`
        : `length(${expression.of.map(write).join()})`;
    case 'multiply':
      return `(${expression.of.map(write).join(' * ')})`;
    default: {
      const parts = expression.of.map((part) => scaledSql(engine, write(part), part.type, expression.type));
      if (expression.is === 'coalesce') return `coalesce(${parts.join(', ')})`;
      return `(${parts.join(expression.is === 'add' ? ' + ' : ' - ')})`;
    }
  }
}

const textSql = (sql: string, { kind }: ColumnType) =>
  kind === 'text' || kind === 'enum' ? sql : `CAST(${sql} AS text)`;

function scaledSql(engine: Engine, sql: string, from: ColumnType, to: ColumnType): string {
  const shift = (scaleOf(to) ?? 0) - (scaleOf(from) ?? 0);
  return engine === 'postgres' || shift === 0 ? sql : `(${sql} * 1${'0'.repeat(shift)})`;
}

function constantSql(engine: Engine, value: number | string, type: ColumnType): string {
  if (type.kind === 'text') return `'${String(value).replaceAll("'", "''")}'`;
  if (engine === 'sqlite') return `(${unitsOf(value)})`;
  return `CAST(${value} AS ${type.kind === 'decimal' ? `numeric(18, ${type.scale})` : 'bigint'})`;
}
