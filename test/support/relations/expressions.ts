import fc from 'fast-check';
import type { ExpressionData, PartData } from '../../../src/config/schema/declaration.ts';
import type { Expression, Value } from '../../../src/relations/relation.ts';
import type { ModelRow } from './model.ts';

/** Random expressions over columns; a declaration refuses many of them. */
export function expressions(columns: readonly string[]): fc.Arbitrary<ExpressionData> {
  const constant = fc.constantFrom<PartData>(' ', "it's", '1.5', '-0.25', 2, -3, { value: 'x' }, '🦊');
  const leaf = fc.oneof({ arbitrary: fc.constantFrom<PartData>(...columns), weight: 3 }, constant);
  const functionOf = (part: fc.Arbitrary<PartData>): fc.Arbitrary<ExpressionData> => {
    const parts = fc.array(part, { minLength: 2, maxLength: 3 });
    return fc.oneof(
      parts.map((concat) => ({ concat })),
      parts.map((add) => ({ add })),
      parts.map((subtract) => ({ subtract })),
      parts.map((multiply) => ({ multiply })),
      parts.map((coalesce) => ({ coalesce })),
      part.map((lower) => ({ lower })),
      part.map((upper) => ({ upper })),
      part.map((length) => ({ length })),
    );
  };
  return functionOf(fc.oneof({ arbitrary: leaf, weight: 2 }, functionOf(leaf)));
}

/** A number as its digits and how many of them are behind the point. */
type Exact = readonly [units: bigint, scale: number];

function exactOf(value: Value): Exact {
  const text = String(value);
  const at = text.indexOf('.');
  return at < 0 ? [BigInt(text), 0] : [BigInt(text.replace('.', '')), text.length - at - 1];
}

function textOf([units, scale]: Exact, wanted: number): string {
  const scaled = String((units < 0n ? -units : units) * 10n ** BigInt(wanted - scale)).padStart(
    wanted + 1,
    '0',
  );
  const whole = scaled.slice(0, scaled.length - wanted);
  return `${units < 0n ? '-' : ''}${whole}${wanted === 0 ? '' : `.${scaled.slice(-wanted)}`}`;
}

/** What an expression is in a row: plainly, with fractions of any length. */
export function evaluated(expression: Expression, row: ModelRow): Value {
  if (expression.is === 'column') return row[expression.name] ?? null;
  if (expression.is === 'constant') return expression.value;
  const values = expression.of.map((each) => evaluated(each, row));
  const { is, type } = expression;
  const found = is === 'coalesce' ? (values.find((value) => value !== null) ?? null) : undefined;
  if (found === null || (found === undefined && values.includes(null))) return null;
  if (type.kind === 'text') {
    const text = found === undefined ? values.join('') : String(found);
    const letters = is === 'lower' ? /[A-Z]/g : /[a-z]/g;
    if (is !== 'lower' && is !== 'upper') return text;
    return text.replace(letters, (each) => (is === 'lower' ? each.toLowerCase() : each.toUpperCase()));
  }
  if (is === 'length') return Array.from(String(values[0])).length;
  const numbers = found === undefined ? values.map(exactOf) : [exactOf(found)];
  const result = numbers.reduce(([a, s], [b, t]): Exact => {
    if (is === 'multiply') return [a * b, s + t];
    const scale = Math.max(s, t);
    const [left, right] = [a * 10n ** BigInt(scale - s), b * 10n ** BigInt(scale - t)];
    return [is === 'add' ? left + right : left - right, scale];
  });
  if (type.kind === 'decimal') return textOf(result, type.scale);
  return type.kind === 'bigint' ? result[0] : Number(result[0]);
}
