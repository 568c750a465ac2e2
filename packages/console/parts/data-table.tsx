import type { ReactElement, ReactNode } from 'react';
import type { Data } from '../data/use-data.ts';
import { Waiting } from './parts.tsx';

/** A column of a table. */
export interface Column<T> {
  readonly title: string;
  /** Hides the title from sight; screen readers read it. */
  readonly isTitleHidden?: boolean;
  /** The classes of the cells; the title of a `number` is aligned as its cells are. */
  readonly className?: string;
  /** Whether the cell names its row. */
  readonly isRowHead?: boolean;
  /** The field by which a click on the title sorts. */
  readonly sort?: string;
  cell(row: T): ReactNode;
}

/** A table that scrolls horizontally if it is wider than the page. */
export function DataTable<T>({
  label,
  columns,
  rows,
  keyOf,
  rowClass,
  areCards = false,
  sort,
  onSort,
}: {
  label: string;
  /** Columns that are false are not shown. */
  columns: readonly (Column<T> | false)[];
  rows: readonly T[];
  keyOf: (row: T) => string | number;
  rowClass?: (row: T) => string;
  /** Whether each row is a card on a narrow screen, where its cells have their titles beside them. */
  areCards?: boolean;
  /** The current order: a field, or `-` and a field for descending. */
  sort?: string;
  onSort?: (sort: string) => void;
}) {
  const shown = columns.filter((column) => column !== false);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach what scrolls.
    <section className={areCards ? 'table cards' : 'table'} aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {shown.map((column) => (
              <ColumnHead key={column.title} column={column} sort={sort} onSort={onSort} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} className={rowClass?.(row)}>
              {shown.map(({ title, className, isRowHead = false, cell }) =>
                isRowHead ? (
                  <th key={title} scope="row" className={className}>
                    {cell(row)}
                  </th>
                ) : (
                  <td key={title} className={className} data-title={areCards ? title : undefined}>
                    {cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** The title of a column. A click sorts by it, another click reverses the order. */
function ColumnHead<T>({
  column: { title, isTitleHidden = false, className = '', sort: field },
  sort,
  onSort,
}: {
  column: Column<T>;
  sort: string | undefined;
  onSort: ((sort: string) => void) | undefined;
}) {
  const numeric = className.split(' ').includes('number') ? 'number' : undefined;
  if (field === undefined) {
    return (
      <th scope="col" className={numeric}>
        {isTitleHidden ? <span className="unseen">{title}</span> : title}
      </th>
    );
  }
  const order = sort === field ? 'ascending' : sort === `-${field}` ? 'descending' : undefined;
  return (
    <th scope="col" aria-sort={order} className={numeric}>
      <button
        type="button"
        className="sort"
        onClick={() => onSort?.(order === 'ascending' ? `-${field}` : field)}
      >
        {title}
        <span aria-hidden="true">{order === undefined ? '' : order === 'ascending' ? ' ↑' : ' ↓'}</span>
      </button>
    </th>
  );
}

/** Shows the answer of an endpoint, that it is loading, or the error. */
export function Loaded<T>({
  data: { value, error },
  what,
  children,
}: {
  data: Data<T>;
  /** The subject of the sentence that tells of an error: `The list of users`. */
  what: string;
  children: (value: T) => ReactElement;
}) {
  if (value === undefined || error !== undefined) return <Waiting error={error} what={what} />;
  return children(value);
}

/** The foot of a table: actions on all rows, and the way to other pages. */
export function Pager({
  actions,
  pages,
}: {
  actions?: ReactNode;
  /** A page without `onGo` does not exist now. */
  pages: readonly { readonly title: string; readonly onGo: (() => void) | undefined }[];
}) {
  return (
    <footer className="table-foot">
      <div className="actions">{actions}</div>
      <div className="actions">
        {pages.map(({ title, onGo }) => (
          <button
            key={title}
            type="button"
            className="button small"
            disabled={onGo === undefined}
            onClick={() => onGo?.()}
          >
            {title}
          </button>
        ))}
      </div>
    </footer>
  );
}
