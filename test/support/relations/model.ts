import { folded } from '../../../src/core/text.ts';
import type { Codec } from '../../../src/relations/codec.ts';
import { codecOf, compareNullable } from '../../../src/relations/codecs.ts';
import type { Column, Reference, Relation, Value } from '../../../src/relations/relation.ts';

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
    const row = Object.fromEntries(
      columns.map((column) => {
        const isGiven = column.type.kind !== 'serial' || body[column.name] !== undefined;
        return [column.name, isGiven ? newValue(column, body[column.name]) : (serial ?? null)];
      }),
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

  read(name: string, key: ModelRow): ModelRow | undefined {
    return this.rows(name).find((row) => this.#agree(name, this.relation(name).key, row, key));
  }

  /** Changes the columns that the body has. */
  update(name: string, key: ModelRow, body: Body): Outcome {
    const before = this.read(name, key);
    if (before === undefined) return { is: 'absent' };
    const changed = this.relation(name).columns.filter((column) => Object.hasOwn(body, column.name));
    const row = {
      ...before,
      ...Object.fromEntries(changed.map((column) => [column.name, parsed(column, body[column.name])])),
    };
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

  list(name: string, { where = {}, sort = [], limit, after, before }: ModelList = {}): readonly ModelRow[] {
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
    const rows = this.rows(name)
      .filter((row) => this.holds(name, row, where))
      .toSorted(compare)
      .filter((row) => after === undefined || compare(row, after) > 0)
      .filter((row) => before === undefined || compare(row, before) < 0);
    if (limit === undefined) return rows;
    return before === undefined ? rows.slice(0, limit) : rows.slice(Math.max(0, rows.length - limit));
  }

  /** Whether a row meets a tree. A comparison with null is false, and `not` is the opposite of that. */
  holds(name: string, row: ModelRow, tree: Tree): boolean {
    return Object.entries(tree).every(([member, given]) => {
      const relation = this.relation(name);
      if (member === 'and') return (given as Tree[]).every((each) => this.holds(name, row, each));
      if (member === 'or') return (given as Tree[]).some((each) => this.holds(name, row, each));
      if (member === 'not') return !this.holds(name, row, given as Tree);
      const column = relation.columns.find((each) => each.name === member);
      if (column !== undefined) return compares(column, row[member] ?? null, given);
      const reference = relation.references.find((each) => each.name === member);
      if (reference !== undefined) {
        const found = this.#referred(reference, row);
        return found !== undefined && this.holds(reference.to, found, given as Tree);
      }
      const inverse = relation.inverses.find((each) => each.name === member);
      if (inverse === undefined) throw new Error(`No member ${member} in ${name}`);
      const all = this.#referring(name, row).filter(
        ({ other, reference: back }) => other === inverse.relation && back.name === inverse.reference,
      );
      const meets =
        (inside: unknown) =>
        ({ found }: { readonly found: ModelRow }) =>
          this.holds(inverse.relation, found, inside as Tree);
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
