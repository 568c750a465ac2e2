import { type ReactElement, type ReactNode, useEffect, useRef } from 'react';
import { goTo } from '../data/route.ts';
import type { Data } from '../data/use-data.ts';
import { Notice, Waiting } from './parts.tsx';

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

/** The rows that are ticked, by their keys. */
interface Selection {
  readonly keys: ReadonlySet<string | number>;
  onChange(keys: ReadonlySet<string | number>): void;
}

/**
 * A table that scrolls horizontally if it is wider than the page. On a phone its rows are cards. A click or tap on a row
 * opens its page; a link in the row does so for the keyboard.
 */
export function DataTable<T>({
  label,
  columns,
  rows,
  keyOf,
  rowClass,
  hrefOf,
  selection,
  sort,
  onSort,
}: {
  label: string;
  /** Columns that are false are not shown. */
  columns: readonly (Column<T> | false)[];
  rows: readonly T[];
  keyOf: (row: T) => string | number;
  rowClass?: (row: T) => string;
  /** The page of a row. */
  hrefOf?: (row: T) => string;
  /** Rows can be ticked. */
  selection?: Selection | undefined;
  /** The current order: a field, or `-` and a field for descending. */
  sort?: string;
  onSort?: (sort: string) => void;
}) {
  const shown = columns.filter((column) => column !== false);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach what scrolls.
    <section className="table" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {selection !== undefined && <TickAll rows={rows.map(keyOf)} selection={selection} />}
            {shown.map((column) => (
              <ColumnHead key={column.title} column={column} sort={sort} onSort={onSort} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            // A link in the row does the same for the keyboard.
            <tr
              key={keyOf(row)}
              className={`${rowClass?.(row) ?? ''}${hrefOf === undefined ? '' : ' opens'}`}
              onClick={(event) => {
                if (hrefOf === undefined || event.target.closest('a, button, input, select, label')) return;
                // The user may have marked a text.
                if (String(getSelection()) === '') goTo(hrefOf(row));
              }}
            >
              {selection !== undefined && (
                <td className="tick">
                  <input
                    type="checkbox"
                    aria-label={`Select ${keyOf(row)}`}
                    checked={selection.keys.has(keyOf(row))}
                    onChange={({ currentTarget: { checked } }) =>
                      selection.onChange(changed(selection.keys, [keyOf(row)], checked))
                    }
                  />
                </td>
              )}
              {shown.map(({ title, isTitleHidden, className, isRowHead = false, cell }) => {
                const Cell = isRowHead ? 'th' : 'td';
                return (
                  <Cell
                    key={title}
                    scope={isRowHead ? 'row' : undefined}
                    className={className}
                    data-title={isTitleHidden || isRowHead ? undefined : title}
                  >
                    {/* One part beside the title of its column, on a phone. */}
                    <span>{cell(row)}</span>
                  </Cell>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** The box that ticks all rows of the page, half ticked if some are. */
function TickAll({ rows, selection }: { rows: readonly (string | number)[]; selection: Selection }) {
  const box = useRef<{ indeterminate: boolean } | null>(null);
  const ticked = rows.filter((key) => selection.keys.has(key)).length;
  useEffect(() => {
    if (box.current !== null) box.current.indeterminate = ticked > 0 && ticked < rows.length;
  }, [ticked, rows.length]);
  return (
    <th scope="col" className="tick">
      <input
        ref={box}
        type="checkbox"
        aria-label="Select all rows of this page"
        checked={rows.length > 0 && ticked === rows.length}
        onChange={({ currentTarget: { checked } }) =>
          selection.onChange(changed(selection.keys, rows, checked))
        }
      />
    </th>
  );
}

function changed(
  keys: Selection['keys'],
  rows: readonly (string | number)[],
  isTicked: boolean,
): Selection['keys'] {
  const others = [...keys].filter((key) => !rows.includes(key));
  return new Set(isTicked ? [...others, ...rows] : others);
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

/** Shows the last answer of an endpoint, with the error if a later request failed; before it, that it is loading. */
export function Loaded<T>({
  data: { value, error, stale },
  what,
  children,
}: {
  data: Data<T>;
  /** The subject of the sentence that tells of an error: `The list of users`. */
  what: string;
  children: (value: T) => ReactElement;
}) {
  if (value === undefined || error !== undefined) return <Waiting error={error} what={what} />;
  return (
    <>
      {/* A service that does not answer at all is told above the page. */}
      {stale !== undefined && stale.status !== 0 && (
        <Notice tone="bad">
          {what} cannot be read anew: {stale.message}
        </Notice>
      )}
      {children(value)}
    </>
  );
}

/** The foot of a table: actions on all rows, and the way to other pages. */
export function Pager({
  total,
  actions,
  pages,
}: {
  /** How many rows all pages have, in words. */
  total?: string | undefined;
  actions?: ReactNode;
  /** A page without `onGo` does not exist now. */
  pages: readonly { readonly title: string; readonly onGo: (() => void) | undefined }[];
}) {
  return (
    <footer className="table-foot">
      <div className="actions">
        {total !== undefined && <span className="note total">{total}</span>}
        {actions}
      </div>
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
