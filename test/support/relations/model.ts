import { folded } from '../../../src/core/text.ts';
import type { Codec } from '../../../src/relations/codec.ts';
import { codecOf, compareNullable } from '../../../src/relations/codecs.ts';
import type { Column, Reference, Relation, Value } from '../../../src/relations/relation.ts';
import { evaluated } from './expressions.ts';

/** A row by the names of its columns. */
export type ModelRow = Readonly<Record<string, Value>>;

/** A row or a change of one, as a client writes it in JSON. */
export type Body = Readonly<Record<string, unknown>>;

/** Why rows cannot be as a write wants them. */
export type Conflict =
  /** Another row has the same values of these columns. */
  | { readonly is: 'taken'; readonly columns: readonly string[] }
  /** There is no row to which this reference refers. */
  | { readonly is: 'missing'; readonly reference: string }
  /** Rows of this relation refer to the row. */
  | { readonly is: 'referenced'; readonly by: string };

/** The outcome of a write: the row as it is now, or was before it was removed. */
export type Outcome =
  | { readonly is: 'done'; readonly row: ModelRow }
  | { readonly is: 'absent' }
  | { readonly is: 'refused'; readonly conflicts: readonly Conflict[] };

/** A change; `row` is the row after it, or before its removal. */
export interface Change {
  readonly relation: string;
  readonly type: 'created' | 'updated' | 'deleted';
  readonly row: ModelRow;
}

/** A tree of conditions, as a client writes it in JSON. */
export type Tree = Readonly<Record<string, unknown>>;

/** A page of a list. */
export interface ModelList {
  readonly where?: Tree;
  /** Columns, also of referenced rows (`author.name`); `-` sorts downwards. The key closes the order. */
  readonly sort?: readonly string[];
  /** Default: all rows. */
  readonly limit?: number;
  /** The row after which the page begins, or before which it ends. */
  readonly after?: ModelRow;
  readonly before?: ModelRow;
}

/** What is shown of rows: columns, and rows of other relations within them. */
export interface ModelSelection {
  readonly columns: readonly string[];
  /** By the name of a reference, inverse or many-to-many. */
  readonly embeds: Readonly<Record<string, ModelSelection & Pick<ModelList, 'where' | 'sort' | 'limit'>>>;
}

/** All relations of a declaration over arrays: plainly what stores and doors do, at no speed. */
export class Model {
  readonly changes: Change[] = [];
  readonly #relations: ReadonlyMap<string, Relation>;
  readonly #rows: ReadonlyMap<string, ModelRow[]>;
  /** The numbers that serials had, which none has again. */
  readonly #used = new Map<string, Set<Value>>();

  constructor(relations: readonly Relation[]) {
    this.#relations = new Map(relations.map((relation) => [relation.name, relation]));
    this.#rows = new Map(relations.map(({ name }) => [name, []]));
  }

  relation(name: string): Relation {
    const relation = this.#relations.get(name);
    if (relation === undefined) throw new Error(`No relation ${name}`);
    return relation;
  }

  rows(name: string): ModelRow[] {
    return this.#rows.get(name) ?? [];
  }

  /** Stores a row. `serial` is the number that the engine gave it, and must be a new one. */
  create(name: string, body: Body, serial?: number): Outcome {
    const { columns } = this.relation(name);
    const row = this.computed(
      name,
      Object.fromEntries(
        columns.map((column) => {
          const isGiven = column.type.kind !== 'serial' || body[column.name] !== undefined;
          return [column.name, isGiven ? newValue(column, body[column.name]) : (serial ?? null)];
        }),
      ),
    );
    const conflicts = this.#conflicts(name, row, undefined);
    if (conflicts.length > 0) return { is: 'refused', conflicts };
    for (const { name: column, type } of columns) {
      if (type.kind !== 'serial') continue;
      const used = this.#used.get(name) ?? new Set();
      if (used.has(row[column] ?? null)) throw new Error(`${name} gave ${row[column]} twice`);
      this.#used.set(name, used.add(row[column] ?? null));
    }
    this.rows(name).push(row);
    this.changes.push({ relation: name, type: 'created', row });
    return { is: 'done', row };
  }

  /** A row with the values of its computed columns. */
  computed(name: string, row: ModelRow): ModelRow {
    const computed = this.relation(name).columns.flatMap(({ name: column, computed: expression }) =>
      expression === undefined ? [] : [[column, evaluated(expression, row)] as const],
    );
    return { ...row, ...Object.fromEntries(computed) };
  }

  read(name: string, key: ModelRow): ModelRow | undefined {
    return this.rows(name).find((row) => this.#agree(name, this.relation(name).key, row, key));
  }

  /** Changes the columns that the body has. */
  update(name: string, key: ModelRow, body: Body): Outcome {
    const before = this.read(name, key);
    if (before === undefined) return { is: 'absent' };
    const changed = this.relation(name).columns.filter((column) => Object.hasOwn(body, column.name));
    const row = this.computed(name, {
      ...before,
      ...Object.fromEntries(changed.map((column) => [column.name, parsed(column, body[column.name])])),
    });
    const conflicts = this.#conflicts(name, row, before);
    if (conflicts.length > 0) return { is: 'refused', conflicts };
    this.#replace(name, before, row);
    return { is: 'done', row };
  }

  /** Removes a row, with the rows that refer to it by cascade. */
  remove(name: string, key: ModelRow): Outcome {
    const row = this.read(name, key);
    if (row === undefined) return { is: 'absent' };
    const removed = this.#cascade(name, row);
    const isRemoved = (found: ModelRow) => removed.some((one) => one.row === found);
    const refused = removed.flatMap((each) =>
      this.#referring(each.name, each.row, 'restrict').filter(({ found }) => !isRemoved(found)),
    );
    if (refused.length > 0) {
      const by = new Set(refused.map(({ other }) => other));
      return { is: 'refused', conflicts: [...by].map((each) => ({ is: 'referenced', by: each })) };
    }
    for (const each of removed) {
      const rows = this.rows(each.name);
      rows.splice(rows.indexOf(each.row), 1);
      this.changes.push({ relation: each.name, type: 'deleted', row: each.row });
    }
    /** Rows that refer by several references are replaced as often. */
    const replaced = new Map<ModelRow, ModelRow>();
    for (const each of removed) {
      for (const { other, found, reference } of this.#referring(each.name, each.row, 'null')) {
        const before = replaced.get(found) ?? found;
        const after = {
          ...before,
          ...Object.fromEntries(reference.columns.map((column) => [column, null])),
        };
        this.#replace(other, before, after);
        replaced.set(found, after);
      }
    }
    return { is: 'done', row };
  }

  /**
   * Whether rows that a removal would remove forbid to remove each other. SQLite looks at the end of the
   * statement, PostgreSQL after each cascade, so that the order of its constraints decides.
   */
  isEntangled(name: string, key: ModelRow): boolean {
    const row = this.read(name, key);
    const removed = row === undefined ? [] : this.#cascade(name, row);
    return removed.some((each) =>
      this.#referring(each.name, each.row, 'restrict').some(
        ({ found }) => found !== each.row && removed.some((one) => one.row === found),
      ),
    );
  }

  /** A row and the rows that are removed with it. */
  #cascade(name: string, row: ModelRow): readonly { readonly name: string; readonly row: ModelRow }[] {
    const removed = [{ name, row }];
    // Grows while it is walked, until nothing refers to a removed row by cascade.
    for (const each of removed) {
      for (const { other, found } of this.#referring(each.name, each.row, 'cascade')) {
        if (!removed.some((one) => one.row === found)) removed.push({ name: other, row: found });
      }
    }
    return removed;
  }

  /** A row with the rows of other relations within it, as clients get it. */
  show(name: string, row: ModelRow, { columns, embeds }: ModelSelection): Body {
    const own = this.relation(name).columns.filter((each) => columns.includes(each.name));
    const nested = Object.entries(embeds).map(([member, { where, sort, limit, ...selection }]) => {
      const { to, rows, isOne } = this.linked(name, row, member);
      const list = { ...(where && { where }), ...(sort && { sort }), ...(limit !== undefined && { limit }) };
      const all = this.#listed(to, rows, list).map((each) => this.show(to, each, selection));
      return [member, isOne ? (all[0] ?? null) : all] as const;
    });
    return Object.fromEntries([...own.map((each) => [each.name, shownValue(each, row)] as const), ...nested]);
  }

  /** The rows behind a reference, an inverse or a many-to-many of a row. */
  linked(
    name: string,
    row: ModelRow,
    member: string,
  ): { readonly to: string; readonly rows: readonly ModelRow[]; readonly isOne: boolean } {
    const { references, inverses, many } = this.relation(name);
    const reference = references.find((each) => each.name === member);
    if (reference !== undefined) {
      const found = this.#referred(reference, row);
      return { to: reference.to, rows: found === undefined ? [] : [found], isOne: true };
    }
    const behind = (relation: string, by: string) =>
      this.#referring(name, row)
        .filter(({ other, reference: back }) => other === relation && back.name === by)
        .map(({ found }) => found);
    const inverse = inverses.find((each) => each.name === member);
    if (inverse !== undefined)
      return { to: inverse.relation, rows: behind(inverse.relation, inverse.reference), isOne: false };
    const connected = many.find((each) => each.name === member);
    if (connected === undefined) throw new Error(`No member ${member} in ${name}`);
    const { through, reference: back, other } = connected;
    const onward = this.relation(through).references.find((each) => each.name === other);
    if (onward === undefined) throw new Error(`No reference ${other} in ${through}`);
    const rows = behind(through, back).map((each) => this.#referred(onward, each));
    return { to: onward.to, rows: [...new Set(rows.filter((each) => each !== undefined))], isOne: false };
  }

  /** The groups of rows that meet a tree, with aggregates such as `sum(price)`, by the names of these. */
  aggregate(
    name: string,
    where: Tree,
    group: readonly string[],
    aggregates: readonly (readonly [is: string, column: string])[],
  ): readonly Body[] {
    const { columns } = this.relation(name);
    const columnOf = (column: string) => columns.find((each) => each.name === column) as Column;
    const groups = Map.groupBy(this.list(name, { where, sort: group }), (row) =>
      JSON.stringify(group.map((column) => comparable(columnOf(column), row[column] ?? null))),
    );
    if (group.length === 0 && groups.size === 0) groups.set('', []);
    return [...groups.values()].map((rows) => {
      const own = group.map((column) => {
        const values = rows.map((row) => row[column] ?? null);
        // Of texts that differ in the case of A to Z the first by its bytes.
        const first = values.toSorted((a, b) =>
          Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b))),
        )[0];
        const value = columnOf(column).type.kind === 'text' ? first : values[0];
        return [column, shownValue(columnOf(column), { [column]: value ?? null })] as const;
      });
      const results: Record<string, unknown> = {};
      for (const [is, column] of aggregates) {
        if (is === 'count') results.count = rows.length;
        else {
          const values = rows.map((row) => row[column] ?? null);
          const members = (results[is] ?? {}) as Body;
          results[is] = { ...members, [column]: aggregated(is, columnOf(column), values) };
        }
      }
      return { ...Object.fromEntries(own), ...results };
    });
  }

  list(name: string, list: ModelList = {}): readonly ModelRow[] {
    return this.#listed(name, this.rows(name), list);
  }

  #listed(
    name: string,
    among: readonly ModelRow[],
    { where = {}, sort = [], limit, after, before }: ModelList,
  ): readonly ModelRow[] {
    const key = this.relation(name).key.filter((column) => !sort.some((each) => bare(each) === column));
    // In the direction of the column before it.
    const sign = sort.at(-1)?.startsWith('-') ? '-' : '';
    const order = [...sort, ...key.map((column) => `${sign}${column}`)];
    const compare = (a: ModelRow, b: ModelRow) => {
      for (const each of order) {
        const [left, codec] = this.#valueAt(name, a, bare(each));
        const [right] = this.#valueAt(name, b, bare(each));
        const found = compareNullable(codec, left, right, each.startsWith('-'));
        if (found !== 0) return found;
      }
      return 0;
    };
    const rows = among
      .filter((row) => this.holds(name, row, where))
      .toSorted(compare)
      .filter((row) => after === undefined || compare(row, after) > 0)
      .filter((row) => before === undefined || compare(row, before) < 0);
    if (limit === undefined) return rows;
    return before === undefined ? rows.slice(0, limit) : rows.slice(Math.max(0, rows.length - limit));
  }

  /** A new row as it would be stored; `serial` is the number that it would have. */
  rowOf(name: string, body: Body, serial: number): ModelRow {
    const { columns } = this.relation(name);
    return this.computed(
      name,
      Object.fromEntries(
        columns.map((column) => {
          const isGiven = column.type.kind !== 'serial' || body[column.name] !== undefined;
          return [column.name, isGiven ? newValue(column, body[column.name]) : serial];
        }),
      ),
    );
  }

  /** The rows to which the references of a row lead, by the reference. */
  referred(name: string, row: ModelRow) {
    return this.relation(name).references.map((reference) => ({
      reference,
      found: this.#referred(reference, row),
    }));
  }

  /**
   * Whether a row meets the tree of a rule, in which `{ caller: '/sub' }` stands for a claim; undefined if a missing claim
   * decides.
   */
  decides(name: string, row: ModelRow, tree: Tree, claims: Body): boolean | undefined {
    return all(
      Object.entries(tree).map(([member, given]) => {
        const relation = this.relation(name);
        if (member === 'and')
          return all((given as Tree[]).map((each) => this.decides(name, row, each, claims)));
        if (member === 'or')
          return any((given as Tree[]).map((each) => this.decides(name, row, each, claims)));
        if (member === 'not') return opposite(this.decides(name, row, given as Tree, claims));
        const column = relation.columns.find((each) => each.name === member);
        if (column !== undefined) return comparesClaims(column, row[member] ?? null, given, claims);
        const reference = relation.references.find((each) => each.name === member);
        if (reference !== undefined) {
          const found = this.#referred(reference, row);
          return this.#some(reference.to, found === undefined ? [] : [found], given as Tree, claims);
        }
        const inverse = relation.inverses.find((each) => each.name === member);
        if (inverse === undefined) throw new Error(`No member ${member} in ${name}`);
        const rows = this.#referring(name, row)
          .filter((each) => each.other === inverse.relation && each.reference.name === inverse.reference)
          .map(({ found }) => found);
        return all(
          Object.entries(given as Tree).map(([quantifier, inside]) => {
            if (quantifier === 'some') return this.#some(inverse.relation, rows, inside as Tree, claims);
            if (quantifier === 'none')
              return opposite(this.#some(inverse.relation, rows, inside as Tree, claims));
            return opposite(this.#some(inverse.relation, rows, { not: inside } as Tree, claims));
          }),
        );
      }),
    );
  }

  #some(name: string, rows: readonly ModelRow[], tree: Tree, claims: Body): boolean | undefined {
    if (rows.some((row) => this.decides(name, row, tree, claims) === true)) return true;
    return this.#lacks(name, tree, claims) ? undefined : false;
  }

  /** Whether a claim in a tree is missing. */
  #lacks(name: string, tree: Tree, claims: Body): boolean {
    return Object.entries(tree).some(([member, given]): boolean => {
      const { columns, references, inverses } = this.relation(name);
      if (member === 'and' || member === 'or')
        return (given as Tree[]).some((each) => this.#lacks(name, each, claims));
      if (member === 'not') return this.#lacks(name, given as Tree, claims);
      const column = columns.find((each) => each.name === member);
      if (column !== undefined) return comparesClaims(column, null, given, claims) === undefined;
      const reference = references.find((each) => each.name === member);
      if (reference !== undefined) return this.#lacks(reference.to, given as Tree, claims);
      const inverse = inverses.find((each) => each.name === member);
      return Object.values(given as Tree).some((each) =>
        this.#lacks(inverse?.relation ?? '', each as Tree, claims),
      );
    });
  }

  /**
   * Whether a row meets a tree. A comparison with null is false, and `not` is the opposite of that. Crossings lead to the
   * rows that `sees` says.
   */
  holds(
    name: string,
    row: ModelRow,
    tree: Tree,
    sees: (name: string, row: ModelRow) => boolean = () => true,
  ): boolean {
    return Object.entries(tree).every(([member, given]) => {
      const relation = this.relation(name);
      if (member === 'and') return (given as Tree[]).every((each) => this.holds(name, row, each, sees));
      if (member === 'or') return (given as Tree[]).some((each) => this.holds(name, row, each, sees));
      if (member === 'not') return !this.holds(name, row, given as Tree, sees);
      const column = relation.columns.find((each) => each.name === member);
      if (column !== undefined) return compares(column, row[member] ?? null, given);
      const reference = relation.references.find((each) => each.name === member);
      if (reference !== undefined) {
        const found = this.#referred(reference, row);
        return (
          found !== undefined &&
          sees(reference.to, found) &&
          this.holds(reference.to, found, given as Tree, sees)
        );
      }
      const { to, rows } = this.linked(name, row, member);
      const all = rows.filter((found) => sees(to, found));
      const meets = (inside: unknown) => (found: ModelRow) => this.holds(to, found, inside as Tree, sees);
      return Object.entries(given as Tree).every(([quantifier, inside]) => {
        if (quantifier === 'some') return all.some(meets(inside));
        return quantifier === 'none' ? !all.some(meets(inside)) : all.every(meets(inside));
      });
    });
  }

  /** The value of a column, perhaps of a referenced row, and its codec. */
  #valueAt(name: string, row: ModelRow | undefined, path: string): readonly [Value, Codec] {
    const [first = '', ...rest] = path.split('.');
    const { columns, references } = this.relation(name);
    const reference = rest.length === 0 ? undefined : references.find((each) => each.name === first);
    if (reference !== undefined) {
      return this.#valueAt(reference.to, row && this.#referred(reference, row), rest.join('.'));
    }
    const column = columns.find((each) => each.name === first);
    if (column === undefined) throw new Error(`No column ${path} in ${name}`);
    return [row?.[first] ?? null, codecOf(column.type)];
  }

  #replace(name: string, before: ModelRow, row: ModelRow): void {
    const rows = this.rows(name);
    rows[rows.indexOf(before)] = row;
    this.changes.push({ relation: name, type: 'updated', row });
  }

  /** Why a row cannot be stored, in place of another one or besides all. */
  #conflicts(name: string, row: ModelRow, before: ModelRow | undefined): readonly Conflict[] {
    const { key, unique, references } = this.relation(name);
    const others = this.rows(name).filter((other) => other !== before);
    const taken = [key, ...unique].filter(
      (columns) =>
        columns.every((column) => row[column] !== null) &&
        others.some((other) => this.#agree(name, columns, other, row)),
    );
    const missing = references.filter((reference) => {
      const { to, columns, targetColumns } = reference;
      if (columns.some((column) => row[column] === null)) return false;
      const found = this.#referred(reference, row);
      const isItself = () =>
        to === name &&
        columns.every((column, i) =>
          equal(this.#codec(name, column), row[column], row[targetColumns[i] ?? '']),
        );
      return (found === undefined || found === before) && !isItself();
    });
    const isMoved = before !== undefined && !this.#agree(name, key, before, row);
    const left = isMoved ? this.#referring(name, before).filter(({ found }) => found !== before) : [];
    return [
      ...taken.map((columns) => ({ is: 'taken', columns }) as const),
      ...missing.map((reference) => ({ is: 'missing', reference: reference.name }) as const),
      ...[...new Set(left.map(({ other }) => other))].map((by) => ({ is: 'referenced', by }) as const),
    ];
  }

  #referred({ to, columns, targetColumns }: Reference, row: ModelRow): ModelRow | undefined {
    if (columns.some((column) => row[column] === null)) return undefined;
    const key = Object.fromEntries(targetColumns.map((target, i) => [target, row[columns[i] ?? ''] ?? null]));
    return this.rows(to).find((found) => this.#agree(to, targetColumns, found, key));
  }

  /** The rows that refer to a row, by references with one way to behave when it is removed, or by any. */
  #referring(name: string, row: ModelRow, onDelete?: Reference['onDelete']) {
    return [...this.#relations.values()].flatMap(({ name: other, references }) =>
      references
        .filter(
          (reference) => reference.to === name && (onDelete ?? reference.onDelete) === reference.onDelete,
        )
        .flatMap((reference) =>
          this.rows(other)
            .filter((found) =>
              reference.columns.every((column, i) =>
                equal(this.#codec(other, column), found[column], row[reference.targetColumns[i] ?? '']),
              ),
            )
            .map((found) => ({ other, found, reference })),
        ),
    );
  }

  #codec(name: string, column: string): Codec {
    return this.#valueAt(name, undefined, column)[1];
  }

  #agree(name: string, columns: readonly string[], a: ModelRow, b: ModelRow): boolean {
    return columns.every((column) => equal(this.#codec(name, column), a[column], b[column]));
  }
}

/** The value of a column as a client gets it. */
export function shownValue({ name, type }: Column, row: ModelRow): unknown {
  const value = row[name] ?? null;
  return value === null ? null : JSON.parse(codecOf(type).format(value));
}

/** A value as a text that is the same for equal values. */
function comparable({ type }: Column, value: Value): string {
  if (value === null) return 'null';
  const text = codecOf(type).formatText(value);
  return `=${type.kind === 'text' && type.fold ? folded(text) : text}`;
}

/** The digits that an average has more than its column. */
const MORE_DIGITS = 6;

/** An aggregate of the values of a column as a client gets it. */
function aggregated(is: string, column: Column, given: readonly Value[]): unknown {
  const { type } = column;
  const values = given.filter((value) => value !== null);
  if (is === 'countDistinct') return new Set(values.map((value) => comparable(column, value))).size;
  if (values.length === 0) return null;
  if (is === 'min' || is === 'max') {
    const { compare, format } = codecOf(type.kind === 'text' ? { ...type, fold: false } : type);
    const sorted = values.toSorted(compare);
    return JSON.parse(format(sorted.at(is === 'min' ? 0 : -1) as NonNullable<Value>));
  }
  if (type.kind === 'number') {
    const sum = values.reduce<number>((total, value) => total + Number(value), 0);
    return is === 'sum' ? sum : sum / values.length;
  }
  const scale = type.kind === 'decimal' ? type.scale : 0;
  const sum = values.reduce<bigint>((total, value) => total + BigInt(String(value).replace('.', '')), 0n);
  if (is === 'sum')
    return type.kind === 'integer' || type.kind === 'serial' ? Number(sum) : decimal(sum, scale);
  const [numerator, count] = [sum * 10n ** BigInt(MORE_DIGITS), BigInt(values.length)];
  const [quotient, rest] = [numerator / count, numerator % count];
  const isUp = 2n * (rest < 0n ? -rest : rest) >= count;
  return decimal(isUp ? quotient + (sum < 0n ? -1n : 1n) : quotient, scale + MORE_DIGITS);
}

function decimal(value: bigint, scale: number): string {
  const digits = String(value)
    .replace('-', '')
    .padStart(scale + 1, '0');
  const point = scale === 0 ? digits : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
  return `${value < 0n ? '-' : ''}${point}`;
}

const bare = (sorted: string) => sorted.replace(/^-/, '');

/** Whether two values are there and the same. */
function equal({ compare }: Codec, a: Value | undefined, b: Value | undefined): boolean {
  return a !== null && a !== undefined && b !== null && b !== undefined && compare(a, b) === 0;
}

/** A value of a new row: what is given, else the default, else null. */
function newValue(column: Column, given: unknown): Value {
  if (given !== undefined) return parsed(column, given);
  if (column.default === undefined) return null;
  if (column.default.kind === 'value') return column.default.value;
  throw new Error(`The model does not know the default of ${column.name}`);
}

function parsed({ name, type }: Column, given: unknown): Value {
  if (given === null) return null;
  const result = codecOf(type).parse(given);
  if ('value' in result) return result.value;
  throw new Error(`${name} ${result.problem}`);
}

/** Whether a value meets the condition of a column: a value, or tests by name. */
function compares(column: Column, value: Value, given: unknown): boolean {
  if (given === null) return value === null;
  if (typeof given !== 'object') return compares(column, value, { eq: given });
  const { compare } = codecOf(column.type);
  const fold = column.type.kind === 'text' && column.type.fold ? folded : String;
  return Object.entries(given as Tree).every(([test, expected]) => {
    if (test === 'isNull') return (value === null) === expected;
    if (test === 'in') return (expected as unknown[]).some((each) => compares(column, value, { eq: each }));
    if (test === 'ne') return !compares(column, value, { eq: expected });
    if (expected === null) return test === 'eq' && value === null;
    if (value === null) return false;
    const other = parsed(column, expected);
    if (test === 'prefix') return fold(String(value)).startsWith(fold(String(other)));
    if (test === 'contains') return fold(String(value)).includes(fold(String(other)));
    const order = other === null ? Number.NaN : compare(value, other);
    switch (test) {
      case 'eq':
        return order === 0;
      case 'lt':
        return order < 0;
      case 'lte':
        return order <= 0;
      case 'gt':
        return order > 0;
      case 'gte':
        return order >= 0;
      default:
        throw new Error(`No test ${test}`);
    }
  });
}

function all(values: readonly (boolean | undefined)[]): boolean | undefined {
  if (values.includes(false)) return false;
  return values.includes(undefined) ? undefined : true;
}

function any(values: readonly (boolean | undefined)[]): boolean | undefined {
  return opposite(all(values.map(opposite)));
}

function opposite(value: boolean | undefined): boolean | undefined {
  return value === undefined ? undefined : !value;
}

/** Like `compares`, with claims in the place of values; undefined if one of them is missing. */
function comparesClaims(column: Column, value: Value, given: unknown, claims: Body): boolean | undefined {
  const pointer = (Object(given) as { readonly caller?: string }).caller;
  if (pointer !== undefined) return comparesClaims(column, value, { eq: given }, claims);
  if (typeof given !== 'object' || given === null) return compares(column, value, given);
  return all(
    Object.entries(given as Tree).map(([test, expected]) => {
      const name = (Object(expected) as { readonly caller?: string }).caller?.slice(1);
      if (name === undefined) return compares(column, value, { [test]: expected });
      const claim = claims[name];
      const found = [claim].flat().map((each) => claimed(column, each));
      if (found.includes(undefined) || (test !== 'in' && Array.isArray(claim))) return undefined;
      return compares(column, value, { [test]: test === 'in' ? found : found[0] });
    }),
  );
}

/** A claim as the JSON of a value of the column; undefined if it is none. */
function claimed({ type }: Column, claim: unknown): unknown {
  if (claim === undefined || claim === null || typeof claim === 'object') return undefined;
  const codec = codecOf(type);
  const parsed = typeof claim === 'string' ? codec.parseText(claim) : codec.parse(claim);
  return 'value' in parsed ? (JSON.parse(codec.format(parsed.value)) as unknown) : undefined;
}
