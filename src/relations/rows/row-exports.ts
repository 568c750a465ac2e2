import type { MaybePromise } from '../../core/scheduler.ts';
import type { ExportFormat } from '../lists.ts';
import type { Relation, Value } from '../relation.ts';
import type { Condition } from './conditions.ts';

/** The values of a key, in the order of the relation's key. */
type RowKey = readonly Value[];

/** The rows of an export, in the order of their key. */
export interface RowExport {
  readonly format: ExportFormat;
  readonly where: Condition;
  /** The indexes of the columns to export; undefined for all. */
  readonly fields: readonly number[] | undefined;
}

/** A range of keys. */
export interface KeyRange {
  /** The key after which it begins; undefined for the first one. */
  readonly after: RowKey | undefined;
  readonly upTo: RowKey;
}

/** Consecutive rows as lines. */
export interface ExportPage {
  /** UTF-8. */
  readonly bytes: Uint8Array;
  /** Number of rows. */
  readonly count: number;
  /** The key of the last row that was looked at; undefined if there was none. */
  readonly last: RowKey | undefined;
  /** Whether more rows may follow. */
  readonly more: boolean;
}

/** Reads rows as lines. All methods fail with StoreUnavailableError. */
export interface RowExports {
  /** Reads about 64 KiB of lines. Fails with UnindexedListError if a condition needs an index. */
  page(selection: RowExport, range: KeyRange): MaybePromise<ExportPage>;
  /** The last key; undefined without rows. */
  lastKey(): Promise<RowKey | undefined>;
}

/** The text before the rows of an export. */
export function rowExportHead(
  { columns }: Relation,
  { format, fields }: Pick<RowExport, 'format' | 'fields'>,
): string {
  if (format === 'ndjson') return '';
  const shown = fields === undefined ? columns : fields.flatMap((i) => columns[i] ?? []);
  return `${shown.map(({ name }) => name).join()}\r\n`;
}

/**
 * The pages of a range, of which one is read while the caller takes the one before. Some have no rows: between any two the
 * caller may end an export that finds nothing for minutes.
 */
export async function* rowPages(
  exports: Pick<RowExports, 'page'>,
  selection: RowExport,
  { after, upTo }: KeyRange,
): AsyncGenerator<ExportPage, void> {
  const read = async (last: RowKey | undefined) => exports.page(selection, { after: last, upTo });
  for (let page = await read(after); ; ) {
    const next = page.more ? read(page.last) : undefined;
    // Its failure is seen when it is awaited, unless the caller wants no more.
    next?.catch(() => {});
    yield page;
    if (next === undefined) return;
    page = await next;
  }
}
