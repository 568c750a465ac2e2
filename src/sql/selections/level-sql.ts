import { maxBytesOf, SMALL } from '../../relations/codecs.ts';
import { type Column, type ColumnType, type Relation, USERS } from '../../relations/relation.ts';
import type { Relations } from '../../relations/rows/conditions.ts';
import { LIMITS } from '../../relations/selections/limits.ts';
import type { NestedRows, Selection } from '../../relations/selections/selection.ts';
import { type Bound, type BoundText, joined, name, type RowDialect } from '../dialects/row-dialects.ts';
import { ConditionWriter, conditionShape, isWalk } from '../relations/conditions-sql.ts';
import { jsonMembers, jsonValue, PageSql, ROW } from '../relations/page-sql.ts';
import { RowSql, tableOf, versionOf, wholeRow } from '../relations/row-sql.ts';
import { textLiteral } from '../schema/tables.ts';
import { type Level, PAGE_BYTES, type Piece, type Selected } from './levels.ts';

/** What a statement selects for the rows of a selection, and how it becomes their JSON. */
export interface SelectedRows {
  /** The expressions. */
  readonly selected: string[];
  readonly pieces: readonly Piece[];
  /** Whether no statement looks at more rows than it shows. */
  readonly isShort: boolean;
  /** Maximum size of the columns of a row in bytes. */
  readonly maxBytes: number;
  /** The expression of the size of the columns that may be large. */
  readonly bytes: string;
  /** The expression of a row's JSON, and the columns in it; undefined if the engine cannot write it. */
  readonly whole: { readonly text: string; readonly columns: readonly string[] } | undefined;
}

const INTEGER: ColumnType = { kind: 'integer' };

/** The alias of the bound keys. */
const KEYS = 'k';
const NTH = '"_nth"';

/** Writes the statements of selections, one for the rows of each level. */
export class SelectionSql {
  readonly #dialect: RowDialect;
  readonly #relations: Relations;
  readonly #pages = new Map<Relation, PageSql>();
  readonly #known = new WeakMap<Selection, SelectedRows>();

  constructor(dialect: RowDialect, relations: Relations) {
    this.#dialect = dialect;
    this.#relations = relations;
  }

  /** What a statement selects from a relation with the alias `ROW`; the same for the same selection. */
  rows(selection: Selection): SelectedRows {
    const known = this.#known.get(selection);
    if (known !== undefined) return known;
    const made = this.#rows(selection, []);
    this.#known.set(selection, made);
    return made;
  }

  #rows({ relation, members }: Selection, before: readonly string[]): SelectedRows {
    const selected = [...before];
    const place = (expression: string) => {
      const at = selected.indexOf(expression);
      return at === -1 ? selected.push(expression) - 1 : at;
    };
    const pieces: Piece[] = [];
    const shown: Column[] = [];
    // The expression of the whole row.
    const parts: string[] = [];
    const columns = new Set<string>();
    let isShort = true;
    let run: JsonMember[] = [];
    const flush = () => {
      if (run.length === 0) return;
      const text = this.#dialect.packs ? jsonMembers(run) : undefined;
      if (text !== undefined) pieces.push({ is: 'json', at: place(text) });
      else {
        for (const [i, { column, value }] of run.entries()) {
          pieces.push({ is: 'text', text: `${i === 0 ? '' : ','}${JSON.stringify(column.name)}:` });
          const { select } = this.#dialect.storage(column.type);
          pieces.push({ is: 'value', at: place(select(value)), type: column.type });
        }
      }
      for (const [i, { column, value }] of run.entries()) {
        const head = `${i === 0 ? '' : ','}${JSON.stringify(column.name)}:`;
        parts.push(textLiteral(head), jsonValue(column, value, this.#dialect));
      }
      run = [];
    };
    const written = (of: string) => {
      pieces.push({ is: 'text', text: of });
      parts.push(textLiteral(of));
    };
    const text = (of: string) => {
      flush();
      written(of);
    };
    const number = (before: string, expression: string, of: readonly string[]) => {
      text(before);
      pieces.push({ is: 'value', at: place(expression), type: INTEGER });
      parts.push(expression);
      for (const column of of) columns.add(column);
    };
    for (const [i, member] of members.entries()) {
      const comma = i === 0 ? '' : ',';
      if (member.is === 'column') {
        const column = relation.columns[member.column];
        if (column === undefined) throw new Error(`${relation.name} has no column ${member.column}`);
        if (member.isText === true) {
          shown.push(column);
          number(`${comma}${JSON.stringify(member.name)}:"`, `${ROW}.${name(column.name)}`, [column.name]);
          text('"');
          continue;
        }
        if (run.length === 0 && comma !== '') written(comma);
        shown.push(column);
        columns.add(column.name);
        run.push({ column: { ...column, name: member.name }, value: `${ROW}.${name(column.name)}` });
      } else if (member.is === 'version') {
        const version = versionOf(relation, this.#dialect, ROW);
        number(`${comma}${JSON.stringify(member.name)}:`, version, columnsOfVersion(relation));
      } else if (member.is === 'constant') {
        text(`${comma}${JSON.stringify(member.name)}:${member.json}`);
      } else {
        text(`${comma}${JSON.stringify(member.name)}:`);
        const links = member.rows.link.on.map(([above]): Selected => {
          const column = columnOf(relation, above);
          const { select } = this.#dialect.storage(column.type);
          return { at: place(select(`${ROW}.${name(above)}`)), type: column.type };
        });
        const { level, isShort: isServed } = this.#level(member.rows, links);
        isShort &&= isServed;
        pieces.push({ is: 'rows', level });
      }
    }
    flush();
    // Each engine writes doubles in its own way.
    const isWritten =
      members.every(({ is }) => is !== 'rows') && shown.every(({ type }) => type.kind !== 'number');
    const wide = shown.filter(({ type }) => maxBytesOf(type) > SMALL);
    return {
      selected,
      pieces: merged([{ is: 'text', text: '{' }, ...pieces, { is: 'text', text: '}' }]),
      isShort,
      maxBytes: sum(shown.map(({ type }) => maxBytesOf(type))),
      bytes:
        wide.map((column) => this.#dialect.size(`${ROW}.${name(column.name)}`, column.type)).join(' + ') ||
        '0',
      whole: isWritten ? { text: joined([`'{'`, ...parts, `'}'`]), columns: [...columns] } : undefined,
    };
  }

  #level(rows: NestedRows, links: readonly Selected[]): { readonly level: Level; readonly isShort: boolean } {
    const { link, selection } = rows;
    const inner = this.#rows(selection, [`${KEYS}.nth`]);
    const isServed = this.#isServed(rows);
    const isWide = inner.maxBytes * LIMITS.rows > LIMITS.bytes;
    const level: Level = {
      path: rows.path,
      isReference: link.isReference,
      links,
      rows: this.#rowsOf(rows, links, inner, isWide),
      looked: isServed ? undefined : this.#lookedAt(rows, links),
      isLimited: rows.limit !== undefined,
      isWide,
      pieces: inner.pieces,
      groups: this.#groupsOf(rows, links, inner),
    };
    return { level, isShort: isServed && inner.isShort };
  }

  /** Whether an index yields the rows of each row above, so that none is looked at in vain. */
  #isServed({ link, where, order, limit }: NestedRows): boolean {
    if (link.isReference) return true;
    const isAll = where.is === 'and' && where.all.length === 0;
    if (limit === undefined && isAll) return true;
    if (link.through !== undefined) return false;
    const fixed = link.on.map(([, there]) => {
      return { is: 'eq', column: columnOf(link.relation, there), value: 0 } as const;
    });
    return isWalk(link.relation, {
      where: { is: 'and', all: [...fixed, where] },
      order: limit === undefined ? [] : order,
    });
  }

  /** What the statements of a level have in common. Both write their parameters in the same order. */
  #begin(rows: NestedRows, links: readonly Selected[]) {
    const { link, where, order, limit, after } = rows;
    const dialect = this.#dialect;
    const pages = this.#pagesOf(link.relation);
    const keys = this.#keys(links);
    const values: Bound[] = [];
    const first = keys.values.length + 1;
    if (!link.isReference) pages.guardShape(order, values, first);
    const writer = new ConditionWriter(dialect, first + values.length);
    conditionShape(where, dialect, values);
    const pairs = this.#pairs(rows);
    const isNull = after?.map((value) => value === null);
    const page = (selected: string) => {
      const shape = { where, order: link.isReference ? [] : order, selected, isNull, links: [pairs] };
      const text = pages.write({ ...shape, backwards: false, seek: undefined, isWide: false }, writer);
      for (const [i, { column }] of order.entries()) {
        const value = after?.[i];
        if (value !== null && value !== undefined) values.push(dialect.storage(column.type).bind(value));
      }
      values.push(link.isReference ? 1 : (limit ?? LIMITS.perRow + 1));
      return text;
    };
    return { pages, keys: `${keys.text} AS ${KEYS}`, values, writer, pairs, page };
  }

  /**
   * The rows of each key in a statement that groups them, since an engine writes texts faster than a driver takes many
   * rows. An index must yield them in order, unless all of them are looked at in any case.
   */
  #groupsOf(
    rows: NestedRows,
    links: readonly Selected[],
    { whole, maxBytes }: SelectedRows,
  ): Level['groups'] {
    const { link, limit } = rows;
    const most = limit ?? LIMITS.perRow + 1;
    if (whole === undefined || link.isReference || maxBytes * most > PAGE_BYTES) return undefined;
    if (limit === undefined && !(this.#dialect.endsEarly && this.#isServed({ ...rows, limit: most })))
      return undefined;
    const { keys, values, page } = this.#begin(rows, links);
    const columns = whole.columns.map((column) => `${ROW}.${name(column)} AS ${name(column)}`);
    const found = page(columns.join(', ') || '1 AS one');
    const count = `CAST(count(*) AS text) || ' '`;
    const group = `SELECT ${count} || coalesce(${this.#dialect.joinedTexts(whole.text)}, '') FROM (${found}) AS ${ROW}`;
    return { statement: { text: `SELECT ${KEYS}.nth, (${group}) FROM ${keys}`, values }, most, maxBytes };
  }

  #rowsOf(rows: NestedRows, links: readonly Selected[], inner: SelectedRows, isWide: boolean): BoundText {
    const { link, where, order, limit, after } = rows;
    const { relation } = link;
    const dialect = this.#dialect;
    const { pages, keys, values, writer, pairs, page } = this.#begin(rows, links);
    const isPaged = !link.isReference && (limit !== undefined || after !== undefined);
    const table = `${tableOf(relation)} AS ${ROW}`;
    const from = `${keys} CROSS JOIN`;
    const total = () => `LIMIT ${dialect.parameter(writer.next(), 'bigint')}`;
    const selected = inner.selected.join(', ');
    if (dialect.packs) {
      const found = `${from} LATERAL (${page(wholeRow(relation, ROW))}) AS ${ROW}`;
      if (!isWide) return { text: `SELECT ${selected} FROM ${found} ${total()}`, values };
      const names = inner.selected.map((_, i) => `c${i}`);
      const looked = `SELECT ${inner.selected.map((each, i) => `${each} AS c${i}`).join(', ')}, ${inner.bytes} AS bytes FROM ${found} ${total()}`;
      const sized = `SELECT *, sum(bytes) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM (${looked}) AS looked`;
      return {
        text: `SELECT ${names.join(', ')} FROM (${sized}) AS sized WHERE coalesce(before, 0) <= ${LIMITS.bytes}`,
        values,
      };
    }
    if (link.isReference) {
      const condition = [pairs, writer.write(where, ROW)].join(' AND ');
      return { text: `SELECT ${selected} FROM ${from} ${table} WHERE ${condition} ${total()}`, values };
    }
    const key = relation.key.map((column) => `${ROW}.${name(column)}`).join(', ');
    const condition = isPaged
      ? `(${key}) IN (${page(key)})`
      : [pairs, writer.write(where, ROW)].join(' AND ');
    const found = `SELECT ${KEYS}.nth AS ${NTH}, ${ROW}.* FROM ${from} ${table} WHERE ${condition} ${total()}`;
    const outer = [`${ROW}.${NTH}`, ...inner.selected.slice(1)].join(', ');
    return {
      text: `SELECT ${outer} FROM (${found}) AS ${ROW} ${pages.orderBy(order, `${ROW}.${NTH}`)}`,
      values,
    };
  }

  /** Counts the rows behind a link, up to one more than may be looked at. */
  #lookedAt({ link }: NestedRows, links: readonly Selected[]): BoundText {
    const { text } = this.#keys(links);
    const table = link.through?.relation ?? link.relation;
    const on = link.on.map(([, there], i) => `t.${name(there)} = ${KEYS}.v${i}`).join(' AND ');
    const some = `SELECT 1 FROM ${text} AS ${KEYS} CROSS JOIN ${tableOf(table)} AS t WHERE ${on} LIMIT ${LIMITS.rows + 1}`;
    return { text: `SELECT count(*) FROM (${some}) AS looked`, values: [] };
  }

  /** The table of the keys, and as many values as are bound for it. */
  #keys(links: readonly Selected[]): BoundText {
    const types = links.map(({ type }) => this.#dialect.storage(type).type);
    return this.#dialect.givenRows(
      types,
      types.map(() => []),
    );
  }

  /** The condition that rows belong to a key. */
  #pairs({ link }: NestedRows): string {
    const pairs = (alias: string) =>
      link.on.map(([, there], i) => `${alias}.${name(there)} = ${KEYS}.v${i}`).join(' AND ');
    if (link.through === undefined) return pairs(ROW);
    const { relation, on } = link.through;
    const there = on.map(([column]) => `t.${name(column)}`).join(', ');
    const own = on.map(([, column]) => `${ROW}.${name(column)}`).join(', ');
    return `(${own}) IN (SELECT ${there} FROM ${tableOf(relation)} AS t WHERE ${pairs('t')})`;
  }

  #pagesOf(relation: Relation): PageSql {
    const known = this.#pages.get(relation);
    if (known !== undefined) return known;
    const made = new PageSql(new RowSql(relation, this.#dialect), this.#relations);
    this.#pages.set(relation, made);
    return made;
  }
}

type JsonMember = { readonly column: Column; readonly value: string };

/** The columns that the version of a row is made from. */
function columnsOfVersion({ name: relation, columns, existing }: Relation): readonly string[] {
  if (existing === undefined) return [relation === USERS ? 'version' : '_version'];
  return existing.hasDigest ? columns.map((column) => column.name) : ['xmin'];
}

function columnOf({ columns, name: relation }: Relation, column: string): Column {
  const found = columns.find((each) => each.name === column);
  if (found === undefined) throw new Error(`${relation} has no column ${column}`);
  return found;
}

/** Puts texts that follow each other into one. */
function merged(pieces: readonly Piece[]): readonly Piece[] {
  const all: Piece[] = [];
  for (const piece of pieces) {
    const last = all.at(-1);
    if (piece.is === 'text' && last?.is === 'text')
      all.splice(-1, 1, { is: 'text', text: last.text + piece.text });
    else all.push(piece);
  }
  return all;
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);
