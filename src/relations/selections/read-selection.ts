import { didYouMean, quote } from '../../core/text.ts';
import type { Relation } from '../relation.ts';
import {
  type ColumnGuard,
  type Filter,
  invalidParameter,
  joined,
  namesOf,
  type Relations,
  readFilter,
  readWhere,
} from '../rows/conditions.ts';
import { type RowOrder, readSort, withKey } from '../rows/orders.ts';
import { LIMITS } from './limits.ts';
import { checkSelection, type Link, linkOf, type SelectedMember, type Selection } from './selection.ts';

/** How the names of parameters begin that say which rows are embedded. */
export const EMBED = 'embed.';

/**
 * The indexes of the columns of a row without `fields`: those that the caller may read; undefined for all. Users with
 * the paths of the contract have its columns.
 */
export function columnsOfRow(relation: Relation, guard?: ColumnGuard): readonly number[] | undefined {
  const { shown, columns } = relation;
  if (shown === undefined) return guard?.readableOf(relation);
  return columns.flatMap((column, i) => (shown.includes(column.name) ? [i] : []));
}

/** What `fields` and the parameters of embedded rows ask for. */
interface Shown {
  /** The indexes of the columns to show, in the order of the row; undefined for those of a row. */
  readonly fields: readonly number[] | undefined;
  /** Given if there are embedded rows. */
  readonly selection?: Selection;
}

/** Rows as `fields` asks for them. */
interface Fields {
  readonly relation: Relation;
  readonly columns: ReadonlySet<number>;
  readonly embeds: ReadonlyMap<string, Embed>;
}

interface Embed {
  readonly path: string;
  readonly link: Link;
  readonly fields: Fields;
  readonly filters: Filter[];
  order: readonly RowOrder[];
  limit: number | undefined;
}

/** Reads `fields=title,author(name)`, then parameters such as `embed.loans.limit=5`. Its methods throw HttpProblem. */
export class SelectionReader {
  readonly #relations: Relations;
  readonly #relation: Relation;
  readonly #guard: ColumnGuard | undefined;
  #fields: Fields | undefined;

  constructor(relations: Relations, relation: Relation, guard?: ColumnGuard) {
    this.#relations = relations;
    this.#relation = relation;
    this.#guard = guard;
  }

  fields(text: string): void {
    const fields = new FieldsReader(this.#relations, text, this.#guard).read(this.#relation);
    checkSelection(selectionOf(this.#relations, fields), 'fields');
    this.#fields = fields;
  }

  embed(parameter: string, values: readonly string[]): void {
    const names = parameter.slice(EMBED.length).split('.');
    let embed: Embed | undefined;
    let at = this.#fields;
    while (at?.embeds.has(names[0] ?? '')) {
      embed = at.embeds.get(names.shift() ?? '');
      at = embed?.fields;
    }
    if (embed === undefined) {
      const [first = ''] = names;
      const message = `${quote(parameter)} is about rows that "fields" does not embed${didYouMean(first, this.#fields?.embeds.keys() ?? [])}; write "fields" with ${quote(`${first}(...)`)}`;
      throw invalidParameter(parameter, message);
    }
    this.#take(embed, parameter, names.join('.'), values);
  }

  get shown(): Shown {
    const fields = this.#fields;
    if (fields === undefined) return { fields: columnsOfRow(this.#relation, this.#guard) };
    if (fields.embeds.size === 0) return { fields: [...fields.columns].toSorted((a, b) => a - b) };
    return { fields: undefined, selection: selectionOf(this.#relations, fields) };
  }

  #take(embed: Embed, parameter: string, name: string, values: readonly string[]): void {
    const { relation, isReference } = embed.link;
    const guard = this.#guard;
    const only = () => {
      const [value = '', ...more] = values;
      if (more.length > 0) throw invalidParameter(parameter, `"${parameter}" takes one value`);
      return value;
    };
    if (isReference && (name === 'limit' || name === 'sort'))
      throw invalidParameter(parameter, `"${parameter}" is for arrays, and "${embed.path}" is one row`);
    if (name === 'limit') embed.limit = readLimit(parameter, only());
    else if (name === 'sort') embed.order = readSort(this.#relations, relation, only(), { parameter, guard });
    else if (name === 'where')
      embed.filters.push(readWhere(this.#relations, relation, only(), { parameter, guard }));
    else {
      const others = isReference ? ['where'] : ['limit', 'sort', 'where'];
      embed.filters.push(readFilter(this.#relations, relation, name, values, { parameter, others, guard }));
    }
  }
}

function selectionOf(relations: Relations, { relation, columns, embeds }: Fields): Selection {
  const shown = [...columns].toSorted((a, b) => a - b);
  return {
    relation,
    members: [
      ...shown.map((column): SelectedMember => {
        return { is: 'column', name: relation.columns[column]?.name ?? '', column };
      }),
      ...Array.from(embeds, ([name, { path, link, fields, filters, order, limit }]): SelectedMember => {
        const where = joined(relations, link.relation, filters);
        const selection = selectionOf(relations, fields);
        return { is: 'rows', name, rows: { path, link, selection, where, order, limit, after: undefined } };
      }),
    ],
  };
}

function readLimit(parameter: string, text: string): number {
  const limit = /^[1-9]\d{0,3}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= LIMITS.perRow) return limit;
  throw invalidParameter(parameter, `"${parameter}" takes a whole number from 1 to ${LIMITS.perRow}`);
}

/** How deep `fields` is read at all. */
const MAX_DEPTH = 20;

/** Reads `fields`: names with commas between, and behind the name of other rows theirs in parentheses. */
class FieldsReader {
  readonly #relations: Relations;
  readonly #text: string;
  readonly #guard: ColumnGuard | undefined;
  #at = 0;

  constructor(relations: Relations, text: string, guard: ColumnGuard | undefined) {
    this.#relations = relations;
    this.#text = text;
    this.#guard = guard;
  }

  read(relation: Relation): Fields {
    const fields = this.#list(relation, []);
    if (this.#at < this.#text.length) throw this.#fault(`has a ")" at ${this.#at + 1} that closes nothing`);
    return fields;
  }

  #list(relation: Relation, path: readonly string[]): Fields {
    const columns = new Set<number>();
    const embeds = new Map<string, Embed>();
    if (path.length > MAX_DEPTH) throw this.#fault(`has more than ${MAX_DEPTH} levels (levels)`);
    do {
      const name = this.#name();
      if (this.#text[this.#at] !== '(') this.#column(relation, name, columns);
      else if (embeds.has(name)) throw this.#fault(`embeds ${quote(name)} twice`);
      else embeds.set(name, this.#embed(relation, name, path));
    } while (this.#takes(','));
    return { relation, columns, embeds };
  }

  #column(relation: Relation, name: string, found: Set<number>): void {
    const { columns, ...linked } = relation;
    const whole = columnsOfRow(relation, this.#guard) ?? columns.keys();
    const index = columns.findIndex((each) => each.name === name);
    const column = columns[index];
    if (name === '*') for (const each of whole) found.add(each);
    else if (column !== undefined) {
      this.#guard?.requireReadable('fields', relation, column);
      found.add(index);
    } else {
      const rows = [...linked.references, ...linked.inverses, ...linked.many].map((each) => each.name);
      const proposal = rows.includes(name)
        ? `; write ${name}(*) for all columns of its rows`
        : didYouMean(
            name,
            columns.map((each) => each.name),
          );
      throw this.#fault(`takes columns of the row, not ${quote(name)}${proposal}`);
    }
  }

  #embed(relation: Relation, name: string, above: readonly string[]): Embed {
    const link = linkOf(this.#relations, relation, name);
    if (link === undefined) {
      const { references, inverses, many } = relation;
      const names = [...references, ...inverses, ...many].map((each) => each.name);
      const known = namesOf(relation).includes(name) ? ', which is a column' : didYouMean(name, names);
      throw this.#fault(`embeds ${quote(name)}, which ${relation.name} does not have${known}`);
    }
    this.#at++;
    const path = [...above, name];
    const fields = this.#list(link.relation, path);
    if (!this.#takes(')')) throw this.#fault(`lacks a ")" behind the columns of ${quote(name)}`);
    return {
      path: path.join('.'),
      link,
      fields,
      filters: [],
      order: link.isReference ? [] : withKey(link.relation, []),
      limit: undefined,
    };
  }

  #name(): string {
    const [name = ''] = /^[^,()]*/.exec(this.#text.slice(this.#at)) ?? [];
    this.#at += name.length;
    return name;
  }

  #takes(sign: string): boolean {
    if (this.#text[this.#at] !== sign) return false;
    this.#at++;
    return true;
  }

  #fault(what: string) {
    return invalidParameter('fields', `"fields" ${what}`);
  }
}
