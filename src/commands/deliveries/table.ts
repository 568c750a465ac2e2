import { cell, pad, widthOf } from './cells.ts';

/** A column of a table of `T`. */
export interface Column<T> {
  readonly title: string;
  readonly text: (row: T) => string;
  /** Numbers stand at the right. */
  readonly right?: boolean;
  /** Where there is little room it is cut down to this many columns of the terminal. */
  readonly least?: number;
  /** Left out where there is too little room; the highest number goes first. */
  readonly dispensable?: number;
}

interface Sized<T> {
  readonly column: Column<T>;
  readonly width: number;
}

const GAP = 2;

/** The lines of a table, no wider than `width` as far as that can be. Nothing is cut when `width` is undefined. */
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

/** Cuts columns, the widest first, then leaves some out, until the rest fits. */
function fit<T>(columns: readonly Sized<T>[], width: number): readonly Sized<T>[] {
  const total = columns.reduce((sum, { width }) => sum + width + GAP, -GAP);
  if (total <= width) return columns;
  const cuttable = columns.filter(({ column, width }) => width > (column.least ?? width));
  const widest = cuttable.reduce<Sized<T> | undefined>(
    (widest, each) => (each.width > (widest?.width ?? 0) ? each : widest),
    undefined,
  );
  if (widest !== undefined) {
    const cut = { ...widest, width: widest.width - 1 };
    return fit(
      columns.map((each) => (each === widest ? cut : each)),
      width,
    );
  }
  const dispensable = columns.reduce((most, { column }) => Math.max(most, column.dispensable ?? 0), 0);
  if (dispensable === 0) return columns;
  return fit(
    columns.filter(({ column }) => column.dispensable !== dispensable),
    width,
  );
}
