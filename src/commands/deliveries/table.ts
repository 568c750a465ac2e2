import { cell, pad, widthOf } from './cells.ts';

/** A column of a table of `T`. */
export interface Column<T> {
  readonly title: string;
  readonly text: (row: T) => string;
  /** Aligned to the right, as numbers are. Default: false. */
  readonly right?: boolean;
  /** Minimum width in columns of the terminal when the table is too wide. Default: it is never cut. */
  readonly least?: number;
  /** Left out when cutting is not enough; the highest number first. Default: never. */
  readonly dispensable?: number;
}

interface Sized<T> {
  readonly column: Column<T>;
  readonly width: number;
}

const GAP = 2;

/** The lines of a table, at most `width` columns wide where its columns allow. Default: as wide as its content. */
export function renderTable<T>(
  columns: readonly Column<T>[],
  rows: readonly T[],
  width = Number.POSITIVE_INFINITY,
): readonly string[] {
  const sized = columns.map((column) => ({
    column,
    width: Math.max(column.title.length, ...rows.map((row) => widthOf(cell(column.text(row))))),
  }));
  const fitted = fit(sized, width);
  const line = (text: (column: Column<T>) => string) =>
    fitted
      .map(({ column, width }) => pad(cell(text(column), width), width, column.right))
      .join(' '.repeat(GAP))
      .trimEnd();
  return [line(({ title }) => title), ...rows.map((row) => line(({ text }) => text(row)))];
}

/** Cuts columns, the widest first; when that is not enough it leaves one out and starts over. */
function fit<T>(columns: readonly Sized<T>[], width: number): readonly Sized<T>[] {
  const cut = columns.map((each) => ({ ...each }));
  while (totalOf(cut) > width) {
    const [widest] = cut
      .filter(({ column, width }) => width > (column.least ?? width))
      .sort((a, b) => b.width - a.width);
    if (widest === undefined) break;
    widest.width--;
  }
  const most = Math.max(...columns.map(({ column }) => column.dispensable ?? 0));
  if (totalOf(cut) <= width || most === 0) return cut;
  return fit(
    columns.filter(({ column }) => column.dispensable !== most),
    width,
  );
}

function totalOf(columns: readonly { readonly width: number }[]): number {
  return columns.reduce((sum, { width }) => sum + width + GAP, -GAP);
}
