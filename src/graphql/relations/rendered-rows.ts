import { setImmediate as turn } from 'node:timers/promises';
import { codecOf } from '../../relations/codecs.ts';
import type { Relation, Value } from '../../relations/relation.ts';
import type { Condition } from '../../relations/rows/conditions.ts';
import { LIMITS, SelectionLimitError } from '../../relations/selections/limits.ts';
import type { Link, NestedRows, SelectedMember, Selection } from '../../relations/selections/selection.ts';
import type { CallerRows } from '../callers/caller-rows.ts';

/** A row whose values are known, as a write or an event has it. */
export interface KnownRow {
  readonly values: readonly Value[];
  /** Undefined in an event. */
  readonly version: number | undefined;
}

/** How many rows of other relations are read at the same time. */
const CONCURRENT = 20;

/** Writes the JSON of rows that are known, and reads the rows of other relations within them for a caller. */
export class RowRenderer {
  readonly #caller: CallerRows;

  constructor(caller: CallerRows) {
    this.#caller = caller;
  }

  /** Rows that the caller may read, whose columns have been checked as the selection was read. */
  async render(rows: readonly KnownRow[], { relation, members }: Selection): Promise<readonly string[]> {
    const texts: string[] = [];
    for (let start = 0; start < rows.length; start += CONCURRENT) {
      // Reads of SQLite do not wait, so others get their turn here.
      if (start > 0) await turn();
      const some = rows.slice(start, start + CONCURRENT);
      texts.push(...(await Promise.all(some.map((row) => this.#row(relation, row, members)))));
    }
    return texts;
  }

  async #row(relation: Relation, row: KnownRow, members: readonly SelectedMember[]): Promise<string> {
    const texts: string[] = [];
    for (const member of members) {
      const name = JSON.stringify(member.name);
      texts.push(`${name}:${await this.#member(relation, row, member)}`);
    }
    return `{${texts.join()}}`;
  }

  #member(
    relation: Relation,
    { values, version }: KnownRow,
    member: SelectedMember,
  ): string | Promise<string> {
    switch (member.is) {
      case 'constant':
        return member.json;
      case 'version':
        return String(version ?? null);
      case 'column': {
        const value = values[member.column] ?? null;
        const column = relation.columns[member.column];
        if (value === null || column === undefined) return 'null';
        const text = codecOf(column.type).format(value);
        return member.isText === true ? `"${text}"` : text;
      }
      case 'rows':
        return this.#nested(relation, values, member.rows);
    }
  }

  async #nested(
    relation: Relation,
    values: readonly Value[],
    { path, link, selection, where, order, limit }: NestedRows,
  ): Promise<string> {
    const found = foundFrom(relation, values, link);
    if (found === undefined) return link.isReference ? 'null' : '[]';
    const { lists } = this.#caller.of(link.relation);
    const shape = { where: { is: 'and', all: [found, where] } as const, order, fields: undefined, selection };
    const most = limit ?? LIMITS.perRow;
    const page = await lists.page({ shape, limit: most, next: undefined, backwards: false });
    if (link.isReference) return page.count === 0 ? 'null' : page.json;
    if (limit === undefined && page.more) throw new SelectionLimitError('perRow', path);
    return `[${page.json}]`;
  }
}

/** The condition on the rows to which a row leads; undefined if it leads to none. */
function foundFrom(relation: Relation, values: readonly Value[], link: Link): Condition | undefined {
  const there = link.through?.relation ?? link.relation;
  const all: Condition[] = [];
  for (const [above, name] of link.on) {
    const value = values[relation.columns.findIndex((each) => each.name === above)];
    const column = there.columns.find((each) => each.name === name);
    if (value === null || value === undefined || column === undefined) return undefined;
    all.push({ is: 'eq', column, value });
  }
  const condition: Condition = { is: 'and', all };
  if (link.through === undefined) return condition;
  const on = link.through.on.map(([connecting, found]) => [found, connecting] as const);
  return { is: 'some', relation: there, on, isReference: false, condition };
}
