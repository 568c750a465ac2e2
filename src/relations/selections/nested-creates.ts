import { HttpProblem } from '@portico/transport';
import { type Reference, type Relation, USERS } from '../relation.ts';
import type { Relations } from '../rows/conditions.ts';
import { type RowFault, RowFormat, type RowValues } from '../rows/rows.ts';
import { EarlierValue, type Given, type RowWrite, type WriteOutcome } from '../rows/writes.ts';
import type { RowView } from '../rules/views.ts';

/** The limits of a create with nested rows, named in refusals. */
const LIMITS = {
  /** Levels of nested rows. */
  levels: 3,
  /** Rows of all levels. */
  rows: 1_000,
} as const;

/** A new row with the rows within it, each by the index of its write. */
interface Tree {
  readonly relation: Relation;
  readonly write: number;
  /** The nested rows in the order of the body. */
  readonly nested: readonly { readonly name: string; readonly rows: Tree | readonly Tree[] }[];
}

type Members = Readonly<Record<string, unknown>>;

/** Whether a new row of a relation has rows of others within it. */
export function hasNested({ references, inverses, many }: Relation, given: unknown): boolean {
  if (typeof given !== 'object' || given === null) return false;
  const isThere = ({ name }: { readonly name: string }) => Object.hasOwn(given, name);
  return references.some(isThere) || inverses.some(isThere) || many.some(isThere);
}

/**
 * Reads new rows with rows of other relations within them: `{"title": "Emma", "author": {...}, "loans": [{...}]}`. They
 * become writes of one transaction: the row of a reference before the row that refers to it, those of inverses behind it.
 */
export class NestedCreates {
  readonly writes: RowWrite[];
  readonly faults: RowFault[] = [];
  /** The rows of the body. */
  readonly trees: Tree[] = [];
  readonly #relations: Relations;
  readonly #caller: string | undefined;
  readonly #view: RowView | undefined;
  readonly #authorize: (relation: string) => void;
  readonly #formats = new Map<Relation, RowFormat>();
  /** The pointer of each write. */
  readonly #pointers = new Map<number, string>();

  /**
   * `caller` is the name for columns with that default, `view` what the caller may write; `authorize` throws for relations
   * that must not be written. `writes` are those of the transaction so far, to which the rows are added.
   */
  constructor(
    relations: Relations,
    {
      caller,
      view,
      writes = [],
      authorize,
    }: {
      readonly caller: string | undefined;
      readonly view: RowView | undefined;
      readonly writes?: RowWrite[];
      authorize(relation: string): void;
    },
  ) {
    this.#relations = relations;
    this.#caller = caller;
    this.#view = view;
    this.writes = writes;
    this.#authorize = authorize;
  }

  /** Reads a row at a pointer, and adds its faults. Throws HttpProblem. */
  add(relation: Relation, given: unknown, at: string): void {
    this.trees.push(this.#read(relation, given, at, 0, new Map()));
  }

  /** The pointer to the row of a write. */
  pointerOf(write: number): string {
    return this.#pointers.get(write) ?? '#';
  }

  /**
   * The JSON of a row of the body as it is stored now, with the rows within it; `shown` says of each write whether its row
   * is shown, and a member with a row that is not shown is left out.
   */
  json(
    { relation, write, nested }: Tree,
    outcomes: readonly WriteOutcome[],
    shown: readonly boolean[],
  ): string {
    const outcome = outcomes[write];
    if (outcome === undefined || outcome.is === 'removed') throw new Error('A create returned no row');
    const own = this.#formatOf(relation).json(outcome.row.values, this.#view?.of(relation).readable);
    const members = nested.flatMap(({ name, rows }) => {
      if ([rows].flat().some((each) => shown[each.write] !== true)) return [];
      const json = (tree: Tree) => this.json(tree, outcomes, shown);
      return `${JSON.stringify(name)}:${'write' in rows ? json(rows) : `[${rows.map(json).join()}]`}`;
    });
    return `${[own.slice(0, -1), ...members].join()}}`;
  }

  /** `linked` has the values of columns that the row above determines. */
  #read(
    relation: Relation,
    given: unknown,
    at: string,
    level: number,
    linked: ReadonlyMap<string, Given>,
  ): Tree {
    const isObject = typeof given === 'object' && given !== null && !Array.isArray(given);
    const members: Members = isObject ? (given as Members) : {};
    const own: Record<string, unknown> = { ...members };
    const values = new Map(linked);
    const nested: { name: string; rows: Tree | readonly Tree[] }[] = [];
    if (level > LIMITS.levels) throw tooMuch(`Rows may be nested in ${LIMITS.levels} levels (levels)`, at);
    for (const column of linked.keys()) {
      if (!Object.hasOwn(members, column)) continue;
      this.#fault(`"${column}" is that of the row around it; leave it out`, `${at}/${column}`);
    }
    for (const { name, to, columns, targetColumns } of relation.references) {
      if (!Object.hasOwn(members, name)) continue;
      delete own[name];
      const pointer = `${at}/${name}`;
      for (const column of columns) {
        if (Object.hasOwn(members, column) || linked.has(column))
          this.#fault(
            `"${column}" is that of the row in "${name}"; leave one of them out`,
            `${at}/${column}`,
          );
      }
      const given = members[name];
      const tree = given === null ? undefined : this.#row(to, given, pointer, level, new Map());
      if (tree === undefined) {
        // Null stands for a missing row, as in the JSON of a read.
        for (const column of columns)
          if (given === null) own[column] = null;
          else values.set(column, null);
        continue;
      }
      nested.push({ name, rows: tree });
      const target = this.#formatOf(tree.relation);
      for (const [i, column] of columns.entries()) {
        values.set(column, this.#valueOf(tree.write, target.indexOf(targetColumns[i] ?? '')));
      }
    }
    for (const { name } of relation.inverses) delete own[name];
    for (const { name, through } of relation.many) {
      if (!Object.hasOwn(members, name)) continue;
      delete own[name];
      this.#fault(`"${name}" cannot be created here; create rows of ${through} instead`, `${at}/${name}`);
    }
    const write = this.#create(relation, isObject ? own : given, at, values);
    for (const inverse of relation.inverses) {
      const { name } = inverse;
      if (!Object.hasOwn(members, name)) continue;
      const rows = this.#rows(inverse, members[name], { at: `${at}/${name}`, level, write });
      if (rows !== undefined) nested.push({ name, rows });
    }
    const order = Object.keys(members);
    nested.sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
    return { relation, write, nested };
  }

  /** Reads one nested row. */
  #row(
    name: string,
    given: unknown,
    at: string,
    level: number,
    linked: ReadonlyMap<string, Given>,
  ): Tree | undefined {
    const relation = this.#relations.get(name);
    if (relation === undefined || name === USERS) {
      this.#fault('users are created by POST /users; write the column of their id', at);
      return undefined;
    }
    this.#authorize(name);
    return this.#read(relation, given, at, level + 1, linked);
  }

  /** Reads the rows of an inverse. */
  #rows(
    { relation, reference: name }: Relation['inverses'][number],
    given: unknown,
    { at, level, write }: { readonly at: string; readonly level: number; readonly write: number },
  ): readonly Tree[] | undefined {
    if (!Array.isArray(given)) {
      this.#fault(`${JSON.stringify(at.slice(at.lastIndexOf('/') + 1))} must be an array of rows`, at);
      return undefined;
    }
    const back = this.#relations.get(relation)?.references.find((each) => each.name === name);
    if (back === undefined) throw new Error(`${relation} has no reference ${name}`);
    const linked = this.#linked(back, write);
    const trees = given.map((row, i) => this.#row(relation, row, `${at}/${i}`, level, linked));
    return trees.filter((tree) => tree !== undefined);
  }

  /** The columns of a reference to the row of a write. */
  #linked({ to, columns, targetColumns }: Reference, write: number): ReadonlyMap<string, Given> {
    const format = this.#formatOf(this.#relations.get(to) as Relation);
    return new Map(
      columns.map((column, i) => [column, this.#valueOf(write, format.indexOf(targetColumns[i] ?? ''))]),
    );
  }

  #create(relation: Relation, given: unknown, at: string, values: ReadonlyMap<string, Given>): number {
    if (this.writes.length >= LIMITS.rows)
      throw tooMuch(
        `A create takes at most ${LIMITS.rows} rows of all levels (rows); send the others in further requests`,
        at,
      );
    const later = new Set(values.keys());
    const isObject = typeof given === 'object' && given !== null && !Array.isArray(given);
    const filled = isObject
      ? { ...given, ...Object.fromEntries([...later].map((name) => [name, null])) }
      : given;
    const row: RowValues = this.#formatOf(relation).readRow(filled, {
      at,
      caller: this.#caller,
      faults: this.faults,
      later,
      view: this.#view?.of(relation),
    });
    this.#pointers.set(this.writes.length, at);
    return (
      this.writes.push({
        is: 'create',
        relation: relation.name,
        row: row.map((value, i) => values.get(relation.columns[i]?.name ?? '') ?? value),
      }) - 1
    );
  }

  /** A column of an earlier row: its value, unless the engine assigns it. */
  #valueOf(write: number, column: number): Given {
    const earlier = this.writes[write];
    const value = earlier?.is === 'create' ? earlier.row[column] : undefined;
    return value ?? new EarlierValue(write, column);
  }

  #formatOf(relation: Relation): RowFormat {
    const known = this.#formats.get(relation);
    if (known !== undefined) return known;
    const made = new RowFormat(relation);
    this.#formats.set(relation, made);
    return made;
  }

  #fault(detail: string, pointer: string): void {
    this.faults.push({ detail, pointer });
  }
}

function tooMuch(message: string, pointer: string): HttpProblem {
  return new HttpProblem(400, 'LIMIT_EXCEEDED', message, { reasons: [{ detail: message, pointer }] });
}
