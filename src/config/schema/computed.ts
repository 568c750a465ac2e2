import * as v from 'valibot';
import { isRecord } from '../../core/json.ts';
import { didYouMean, quote } from '../../core/text.ts';
import { codecOf } from '../../relations/codecs.ts';
import { columnsRead, FUNCTIONS, numberOf, scaleOf, unitsOf } from '../../relations/hooks/computed.ts';
import { MAX_INT64, MIN_INT64 } from '../../relations/number-codecs.ts';
import type { Column, ColumnRules, ColumnType, Expression } from '../../relations/relation.ts';
import { MAX_PRECISION, MAX_TEXT } from './columns.ts';
import { namedOf, pathTo } from './fields.ts';

/** Maximum depth and number of parts of an expression. */
const MAX_DEPTH = 10;
const MAX_PARTS = 100;

/** Computed columns in the JSON Schema of portico.config.json. */
export const computedSchema = v.record(
  v.string(),
  v.union(
    FUNCTIONS.map((name) =>
      v.strictObject({
        [name]: v.union([
          v.string(),
          v.array(v.union([v.string(), v.number(), v.record(v.string(), v.unknown())])),
        ]),
      }),
    ),
  ),
);

const SHAPE = `must be an expression: an object with one of ${FUNCTIONS.join(', ')}, such as { concat: ["first", " ", "last"] }`;
/** Functions over rows of other relations, which no column of the table can be. */
const OVER_ROWS = ['sum', 'count', 'min', 'max', 'avg'];
const ONE = ['lower', 'upper', 'length'];

/** Reads the computed columns of a relation, whose other columns are `columns`. */
export function readComputed(
  given: { readonly value: unknown; readonly path: string },
  columns: readonly Column[],
  problems: string[],
): readonly Column[] {
  const computed = namedOf(given, 'expressions by name', problems);
  const names = computed.map(({ name }) => name);
  return computed.flatMap(({ name, value, path }): readonly Column[] => {
    const reader = new ExpressionReader(columns, names, problems);
    const expression = reader.read(value, path);
    if (expression === undefined) return [];
    const read = columnsRead(expression);
    const rules = readableOf(
      path,
      columns.filter((column) => read.includes(column.name)),
      problems,
    );
    return [
      {
        name,
        type: expression.type,
        nullable: isNullable(expression),
        default: undefined,
        was: undefined,
        computed: expression,
        ...(rules !== undefined && { rules }),
      },
    ];
  });
}

/** A computed column is hidden from those from whom what it reads is hidden. */
function readableOf(path: string, read: readonly Column[], problems: string[]): ColumnRules | undefined {
  const all = new Map(
    read.flatMap(({ rules }) =>
      rules?.read === undefined ? [] : [[JSON.stringify(rules.read), rules.read]],
    ),
  );
  if (all.size > 1)
    problems.push(`${path} reads columns with different \`read\`, so that it has none; give them the same`);
  const [rule] = all.values();
  return rule === undefined ? undefined : { read: rule, write: undefined, fixed: undefined, set: undefined };
}

function isNullable(expression: Expression): boolean {
  if (expression.is === 'column') return expression.nullable;
  if (expression.is === 'constant') return false;
  return expression.is === 'coalesce' ? expression.of.every(isNullable) : expression.of.some(isNullable);
}

/** The least and the most that a number of a type can be, in units of its last digit. */
interface Range {
  readonly min: bigint;
  readonly max: bigint;
}

class ExpressionReader {
  readonly #columns: readonly Column[];
  readonly #computed: readonly string[];
  readonly #problems: string[];
  #parts = 0;

  constructor(columns: readonly Column[], computed: readonly string[], problems: string[]) {
    this.#columns = columns;
    this.#computed = computed;
    this.#problems = problems;
  }

  /** The expression of a column; undefined with a problem. */
  read(value: unknown, path: string): Expression | undefined {
    return isRecord(value) && !('value' in value)
      ? this.#function(value, path, 0)
      : this.#refuse(`${path} ${SHAPE}`);
  }

  #refuse(problem: string): undefined {
    this.#problems.push(problem);
    return undefined;
  }

  #function(value: Readonly<Record<string, unknown>>, path: string, depth: number): Expression | undefined {
    const [is = '', ...more] = Object.keys(value);
    const known = FUNCTIONS.find((name) => name === is);
    if (more.length > 0 || is === '') return this.#refuse(`${path} ${SHAPE}`);
    if (known === undefined) {
      const why = OVER_ROWS.includes(is)
        ? ' concerns rows of other relations, which a column cannot; ask for it with aggregate'
        : ` is not a function of computed columns${didYouMean(is, FUNCTIONS)}; these are ${FUNCTIONS.join(', ')}`;
      return this.#refuse(`${pathTo(path, is)}${why}`);
    }
    const at = pathTo(path, is);
    const listed: readonly unknown[] = [value[is]].flat();
    const isOne = ONE.includes(is);
    if (isOne ? listed.length !== 1 : listed.length < 2)
      return this.#refuse(`${at} takes ${isOne ? 'one part' : 'two parts or more'}`);
    if (depth === MAX_DEPTH) return this.#refuse(`${at} is more than ${MAX_DEPTH} levels deep`);
    const how = known === 'coalesce' && listed.some((part) => this.#isNumber(part)) ? 'add' : known;
    const of = listed.map((part, nth) =>
      this.#part(part, isOne && !Array.isArray(value[is]) ? at : `${at}[${nth}]`, how, depth + 1),
    );
    if (of.includes(undefined)) return undefined;
    if ((of as readonly Expression[]).every((part) => columnsRead(part).length === 0))
      return this.#refuse(`${at} must read a column`);
    return this.#typed(known, of as readonly Expression[], at);
  }

  /** Whether a part is a number, so that a text beside it is one too. */
  #isNumber(part: unknown): boolean {
    const column = this.#columns.find(({ name }) => name === part);
    if (column !== undefined) return scaleOf(column.type) !== undefined;
    return isRecord(part) && Object.keys(part).some((name) => ['add', 'subtract', 'multiply'].includes(name));
  }

  /** A column, a constant or another expression. A text that could be a name is that of a column. */
  #part(value: unknown, path: string, of: string, depth: number): Expression | undefined {
    if (this.#parts++ === MAX_PARTS) return this.#refuse(`${path} is one of more than ${MAX_PARTS} parts`);
    if (typeof value === 'string' && /^[A-Za-z_]\w*$/.test(value)) return this.#column(value, path);
    if (isRecord(value) && Object.keys(value).join() === 'value')
      return this.#constant(value.value, path, of);
    if (isRecord(value)) return this.#function(value, path, depth);
    return this.#constant(value, path, of);
  }

  #column(name: string, path: string): Expression | undefined {
    const column = this.#columns.find((each) => each.name === name);
    if (column === undefined) {
      if (this.#computed.includes(name))
        return this.#refuse(`${path} ${quote(name)} is computed itself; write its expression instead`);
      const names = this.#columns.map((each) => each.name);
      return this.#refuse(
        `${path} ${quote(name)} is not a column${didYouMean(name, names)}; for the text write { value: ${quote(name)} }`,
      );
    }
    const { type, nullable } = column;
    if (type.kind === 'serial')
      return this.#refuse(
        `${path} ${quote(name)} is numbered when the row is stored, after what is computed`,
      );
    return { is: 'column', name, type, nullable };
  }

  #constant(value: unknown, path: string, of: string): Expression | undefined {
    if (typeof value === 'number') {
      if (!Number.isSafeInteger(value))
        return this.#refuse(`${path} must be a whole number, or a text such as "1.19", which is exact`);
      return { is: 'constant', value: value + 0, type: { kind: 'integer', min: value, max: value } };
    }
    if (typeof value !== 'string')
      return this.#refuse(`${path} must be a column, a constant or an expression`);
    const isNumber =
      /^-?\d{1,18}(?:\.\d{1,18})?$/.test(value) && value.replace(/\D/g, '').length <= MAX_PRECISION;
    const isCalculated = ['add', 'subtract', 'multiply'].includes(of);
    if (isCalculated && !isNumber)
      return this.#refuse(`${path} must be a number of at most ${MAX_PRECISION} digits`);
    if (isCalculated) return this.#decimal(value);
    const parsed = codecOf({ kind: 'text', max: MAX_TEXT, fold: false }).parse(value);
    if ('problem' in parsed) return this.#refuse(`${path} ${parsed.problem}`);
    return { is: 'constant', value, type: { kind: 'text', max: [...value].length, fold: false } };
  }

  #decimal(text: string): Expression {
    const scale = text.split('.')[1]?.length ?? 0;
    const bare = numberOf(unitsOf(text), { kind: 'decimal', precision: MAX_PRECISION, scale }) as string;
    const type: ColumnType = { kind: 'decimal', precision: MAX_PRECISION, scale, min: bare, max: bare };
    return { is: 'constant', value: bare, type };
  }

  /** A function with the type of its result, of which no value is cut, rounded or too large. */
  #typed(
    is: Exclude<Expression['is'], 'column' | 'constant'>,
    of: readonly Expression[],
    path: string,
  ): Expression | undefined {
    const kinds = of.map(({ type }) => type.kind);
    const isText = kinds.every((kind) => kind === 'text' || kind === 'enum');
    switch (is) {
      case 'concat': {
        const wrong = kinds.find((kind) => !['text', 'enum', 'uuid', 'integer', 'bigint'].includes(kind));
        if (wrong !== undefined)
          return this.#refuse(
            `${path} takes no ${wrong}, of which engines make different texts; it takes text, enum, uuid, integer and bigint`,
          );
        return this.#text(
          is,
          of,
          of.reduce((sum, { type }) => sum + charactersOf(type), 0),
          path,
        );
      }
      case 'lower':
      case 'upper':
        if (!isText) return this.#refuse(`${path} takes a text`);
        return this.#text(is, of, charactersOf((of[0] as Expression).type), path);
      case 'length': {
        if (!isText) return this.#refuse(`${path} takes a text`);
        const max = charactersOf((of[0] as Expression).type);
        return { is, of, type: { kind: 'integer', min: 0, max } };
      }
      case 'coalesce':
        // PostgreSQL would replace the call by the constant, and could not create the column then.
        if (of.slice(0, -1).some((part) => part.is === 'constant'))
          return this.#refuse(`${path} has parts behind a constant, which are never reached`);
        if (isText) return this.#text(is, of, Math.max(...of.map(({ type }) => charactersOf(type))), path);
        return this.#number(is, of, path, ({ min, max }, other) => ({
          min: least([min, other.min]),
          max: most([max, other.max]),
        }));
      case 'add':
        return this.#number(is, of, path, (a, b) => ({ min: a.min + b.min, max: a.max + b.max }));
      case 'subtract':
        return this.#number(is, of, path, (a, b) => ({ min: a.min - b.max, max: a.max - b.min }));
      case 'multiply':
        return this.#number(is, of, path, (a, b) => {
          const all = [a.min * b.min, a.min * b.max, a.max * b.min, a.max * b.max];
          return { min: least(all), max: most(all) };
        });
    }
  }

  #text(
    is: 'concat' | 'lower' | 'upper' | 'coalesce',
    of: readonly Expression[],
    max: number,
    path: string,
  ): Expression | undefined {
    if (max > MAX_TEXT)
      return this.#refuse(
        `${path} may have ${max} characters, and a text at most ${MAX_TEXT}; give what it reads a lower max`,
      );
    return { is, of, type: { kind: 'text', max: Math.max(1, max), fold: false } };
  }

  #number(
    is: 'add' | 'subtract' | 'multiply' | 'coalesce',
    of: readonly Expression[],
    path: string,
    combine: (a: Range, b: Range) => Range,
  ): Expression | undefined {
    const wrong = of.find(({ type }) => scaleOf(type) === undefined);
    if (wrong !== undefined) {
      const { kind } = wrong.type;
      if (kind === 'number')
        return this.#refuse(`${path} takes no number, which is not exact; declare a decimal`);
      return this.#refuse(
        is === 'coalesce'
          ? `${path} takes texts alone, or integers, bigints and decimals alone`
          : `${path} takes integers, bigints and decimals, not ${kind}`,
      );
    }
    const scales = of.map(({ type }) => scaleOf(type) ?? 0);
    const scale = is === 'multiply' ? scales.reduce((a, b) => a + b, 0) : Math.max(...scales);
    const kind = of.some(({ type }) => type.kind === 'decimal')
      ? 'decimal'
      : of.some(({ type }) => type.kind === 'bigint')
        ? 'bigint'
        : 'integer';
    const ranges = of.map(({ type }, nth): Range => {
      const unit = is === 'multiply' ? 1n : 10n ** BigInt(scale - (scales[nth] ?? 0));
      const { min, max } = rangeOf(type);
      return { min: min * unit, max: max * unit };
    });
    const limit = LIMITS[kind];
    // What SQLite calculates on the way must fit too, whatever is subtracted later.
    let range: Range | undefined;
    for (const next of ranges) {
      range = range === undefined ? next : combine(range, next);
      const found = [range.min, range.max, next.min, next.max];
      if (scale <= MAX_PRECISION && least(found) >= limit.min && most(found) <= limit.max) continue;
      return this.#refuse(`${path} may be beyond ${limit.name}; give what it reads \`min\` and \`max\``);
    }
    const { min, max } = range as Range;
    switch (kind) {
      case 'decimal': {
        const type = { kind, precision: MAX_PRECISION, scale } as const;
        return {
          is,
          of,
          type: { ...type, min: String(numberOf(min, type)), max: String(numberOf(max, type)) },
        };
      }
      case 'bigint':
        return { is, of, type: { kind, min, max } };
      case 'integer':
        return { is, of, type: { kind, min: Number(min), max: Number(max) } };
    }
  }
}

const DIGITS = 10n ** BigInt(MAX_PRECISION) - 1n;
const LIMITS = {
  decimal: { min: -DIGITS, max: DIGITS, name: `${MAX_PRECISION} digits` },
  bigint: { min: MIN_INT64, max: MAX_INT64, name: '64 bits' },
  integer: {
    min: BigInt(Number.MIN_SAFE_INTEGER),
    max: BigInt(Number.MAX_SAFE_INTEGER),
    name: '2^53, where a JSON number is not exact',
  },
} as const;

const sorted = (values: readonly bigint[]) => values.toSorted((a, b) => Number(a > b) - Number(a < b));
const least = (values: readonly bigint[]) => sorted(values)[0] ?? 0n;
const most = (values: readonly bigint[]) => sorted(values).at(-1) ?? 0n;

function rangeOf(type: ColumnType): Range {
  if (type.kind === 'decimal') {
    const limit = 10n ** BigInt(type.precision) - 1n;
    return {
      min: type.min === undefined ? -limit : unitsOf(type.min),
      max: type.max === undefined ? limit : unitsOf(type.max),
    };
  }
  const { min, max } = type as { readonly min?: number | bigint; readonly max?: number | bigint };
  const limit = type.kind === 'bigint' ? LIMITS.bigint : LIMITS.integer;
  return { min: BigInt(min ?? limit.min), max: BigInt(max ?? limit.max) };
}

/** The most characters that a value has as a text. */
function charactersOf(type: ColumnType): number {
  switch (type.kind) {
    case 'text':
      return type.max;
    case 'enum':
      return Math.max(...type.values.map((value) => [...value].length));
    case 'uuid':
      return 36;
    default: {
      const { min, max } = rangeOf(type);
      return Math.max(String(min).length, String(max).length);
    }
  }
}
