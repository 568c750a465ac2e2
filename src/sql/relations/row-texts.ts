import { StatementTimeError } from '../../core/errors.ts';
import { GenerationalCache } from '../../core/generational-cache.ts';
import { type MaybePromise, whenReady } from '../../core/scheduler.ts';
import { maxBytesOf } from '../../relations/codecs.ts';
import { PAGE_BYTES, PageRows } from '../../relations/lists.ts';
import type { Column } from '../../relations/relation.ts';
import type { ExportPage, KeyRange, RowExport, RowExports } from '../../relations/rows/row-exports.ts';
import type { RowKey } from '../../relations/rows/rows.ts';
import { type Bound, joined, name } from '../dialects/row-dialects.ts';
import type { PackedTexts } from '../list-sql.ts';
import { ConditionWriter, conditionShape, requireIndexes } from './conditions-sql.ts';
import { jsonValue, orElse, ROW } from './page-sql.ts';
import type { RowEngine } from './row-engine.ts';
import type { RowSql } from './row-sql.ts';

/** Maximum number of rows that a page looks at, also without a match. */
const MAX_LOOKED = 1_000;
/** How many rows the first page looks at if the engine ends no statement early and each row may take long. */
const FIRST_LOOKED = 16;
/** A page that takes less time makes the next one larger, one that takes more makes it smaller, in milliseconds. */
const PACE = { quick: 50, slow: 100 } as const;
/** Maximum size of the values of so many rows that are read without a look at their sizes, in bytes. */
const MAX_NARROW = 2 * 1024 * 1024;
/** Maximum size of all texts of statements in the cache, in bytes. */
const MAX_TEXTS = 512 * 1024;

/**
 * The rows of a relation as lines, which the engine writes. A page looks at a bounded number of rows in the
 * order of the key, so that no condition makes it long.
 */
export class RowTexts implements RowExports {
  readonly #sql: RowSql;
  readonly #engine: RowEngine;
  readonly #rowsOfPage = new PageRows(MAX_LOOKED);
  /** How many rows the next page of an export may look at, where the time of a page depends on that alone. */
  readonly #paces = new WeakMap<RowExport, number>();
  /** The texts of statements by their shape. */
  readonly #texts = new GenerationalCache<string>(MAX_TEXTS);

  constructor(sql: RowSql, engine: RowEngine) {
    this.#sql = sql;
    this.#engine = engine;
  }

  async lastKey(): Promise<RowKey | undefined> {
    const { key } = this.#sql.relation;
    const order = key.map((column) => `${ROW}.${name(column)} DESC`).join(', ');
    const text = `SELECT ${this.#keys()} FROM ${this.#sql.table} AS ${ROW} ORDER BY ${order} LIMIT 1`;
    const [row] = await this.#engine.readLatest({ text, values: [] });
    return row && this.#keyOf(row);
  }

  page(selection: RowExport, range: KeyRange): MaybePromise<ExportPage> {
    requireIndexes(selection.where);
    const most = this.#rowsOfPage.rowsFor(0);
    if (!this.#isPaced(selection)) return this.#read(selection, range, most);
    return this.#paced(selection, range, most);
  }

  /** Whether the time of a page is bounded by the number of its rows. */
  #isPaced({ where }: RowExport): boolean {
    return !isAll(where) && !this.#engine.dialect.endsEarly;
  }

  /** Reads a page of as many rows as the pages before let expect to be quick, or of fewer if it takes too long. */
  async #paced(selection: RowExport, range: KeyRange, most: number): Promise<ExportPage> {
    let limit = Math.min(most, this.#paces.get(selection) ?? FIRST_LOOKED);
    for (;;) {
      try {
        const { taken = 0, ...page } = await this.#read(selection, range, limit);
        if (taken < PACE.quick) limit *= 2;
        else if (taken > PACE.slow) limit = Math.max(1, limit >> 1);
        this.#paces.set(selection, Math.min(MAX_LOOKED, limit));
        return page;
      } catch (error) {
        // A row that alone takes too long is refused as it would be in a list.
        if (!(error instanceof StatementTimeError) || limit === 1) throw error;
        limit = Math.max(1, limit >> 3);
      }
    }
  }

  #read(
    selection: RowExport,
    { after, upTo }: KeyRange,
    limit: number,
  ): MaybePromise<ExportPage & Pick<PackedTexts, 'taken'>> {
    const { where, format, fields } = selection;
    const values: Bound[] = [];
    const isFirst = after === undefined;
    const shape = `${format} ${fields?.join() ?? '*'} ${isFirst} ${conditionShape(where, this.#engine.dialect, values)}`;
    let text = this.#texts.get(shape);
    if (text === undefined) {
      text = this.#pageText(selection, isFirst);
      this.#texts.set(shape, text, 2 * (shape.length + text.length));
    }
    if (after !== undefined) values.push(...this.#bound(after));
    values.push(...this.#bound(upTo), limit);
    const bounds = {
      maxBytes: PAGE_BYTES,
      atOnce: isAll(where) && this.#isNarrow(fields),
      isPaced: this.#isPaced(selection),
    };
    return whenReady(
      this.#engine.texts({ text, values }, bounds),
      ({ bytes, count, looked, last, isCut, taken }) => {
        this.#rowsOfPage.read(bytes.length, looked);
        const more = looked === limit || isCut || bytes.length >= PAGE_BYTES;
        return { bytes, count, last: last && this.#keyOf(last), more, ...(taken !== undefined && { taken }) };
      },
    );
  }

  #pageText(selection: RowExport, isFirst: boolean): string {
    const { where, format, fields } = selection;
    const { dialect } = this.#engine;
    const { table, relation } = this.#sql;
    const writer = new ConditionWriter(dialect);
    const matches = isAll(where) ? undefined : writer.timed(where, ROW, relation.key[0]);
    const line = format === 'csv' ? this.#csv(fields) : this.#json(fields);
    const text = matches === undefined ? line : `CASE WHEN ${matches} THEN ${line} END`;
    const own = `(${relation.key.map((column) => `${ROW}.${name(column)}`).join(', ')})`;
    const given = () =>
      `(${relation.key.map((column) => this.#sql.parameter(writer.next(), this.#sql.typeOf(column))).join(', ')})`;
    const range = [...(isFirst ? [] : [`${own} > ${given()}`]), `${own} <= ${given()}`].join(' AND ');
    const order = relation.key.map((column) => `${ROW}.${name(column)}`).join(', ');
    const limit = `LIMIT ${dialect.parameter(writer.next(), 'bigint')}`;
    const rows = `${table} AS ${ROW} WHERE ${range}`;
    const isPaced = this.#isPaced(selection);
    return dialect.textPage({
      text,
      keys: relation.key.map((column) => this.#keySelected(column)),
      // Apart from its condition, so that the statement is planned for as many rows as it looks at.
      from: isPaced ? `(SELECT * FROM ${rows} ORDER BY ${order} ${limit}) AS ${ROW}` : rows,
      order,
      limit: isPaced ? '' : limit,
      maxBytes: this.#isNarrow(fields) ? undefined : PAGE_BYTES,
    });
  }

  /** Whether a page of any rows is small enough to be held in memory. */
  #isNarrow(fields: readonly number[] | undefined): boolean {
    const size = this.#shown(fields).reduce((sum, { type }) => sum + maxBytesOf(type), 0);
    return size * MAX_LOOKED <= MAX_NARROW;
  }

  #json(fields: readonly number[] | undefined): string {
    const members = this.#shown(fields).flatMap((column, i) => [
      `'${i === 0 ? '{' : ','}"${column.name}":'`,
      jsonValue(column, `${ROW}.${name(column.name)}`, this.#sql.dialect),
    ]);
    return joined([...members, `'}\n'`]);
  }

  #csv(fields: readonly number[] | undefined): string {
    const parts = this.#shown(fields).flatMap((column, i) => [
      ...(i === 0 ? [] : [`','`]),
      orElse(column, this.#csvValue(column), ''),
    ]);
    return joined([...parts, `'\r\n'`]);
  }

  #shown(fields: readonly number[] | undefined): readonly Column[] {
    const { columns } = this.#sql.relation;
    return fields === undefined ? columns : fields.flatMap((i) => columns[i] ?? []);
  }

  /** The text of a value in CSV. Texts are quoted, so that an empty one differs from null. */
  #csvValue({ name: column, type }: Column): string {
    const own = `${ROW}.${name(column)}`;
    const json = this.#engine.dialect.storage(type).json(own);
    switch (type.kind) {
      case 'text':
      case 'enum':
      case 'json':
        return `('"' || replace(CAST(${own} AS text), '"', '""') || '"')`;
      case 'bytes':
        return `('"' || ${json} || '"')`;
      default:
        return `CAST(${json} AS text)`;
    }
  }

  #keys(): string {
    return this.#sql.relation.key.map((column) => this.#keySelected(column)).join(', ');
  }

  #keySelected(column: string): string {
    return this.#sql.storageAt(this.#sql.indexOf(column)).select(`${ROW}.${name(column)}`);
  }

  #bound(key: RowKey): readonly Bound[] {
    return this.#sql.relation.key.map((column, i) => this.#sql.bind(key[i], this.#sql.typeOf(column)));
  }

  #keyOf(stored: readonly unknown[]): RowKey {
    return this.#sql.relation.key.map((column, i) =>
      this.#sql.storageAt(this.#sql.indexOf(column)).read(stored[i]),
    );
  }
}

/** Whether a condition is true for all rows. */
function isAll(where: RowExport['where']): boolean {
  return where.is === 'and' && where.all.length === 0;
}
