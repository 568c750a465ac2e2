import { useState } from 'react';
import { useStream } from '../../data/api.ts';
import {
  type Field,
  isSorted,
  keyOf,
  labelsOf,
  type Relation,
  type Row,
  readCount,
  readPage,
  rowLink,
  textOf,
} from '../../data/relations.ts';
import { useData } from '../../data/use-data.ts';
import { type Column, DataTable, Pager } from '../../parts/data-table.tsx';
import { Card, Empty, Notice, Waiting } from '../../parts/parts.tsx';
import { RowName, referenceOf, referredKey, Value } from './cell.tsx';
import { filtersIn, RowFilters } from './row-filters.tsx';

type Query = Readonly<Record<string, string>>;

/** Rows of a page. */
const LIMIT = '50';
/** References of which the rows are read too. */
const MAX_NAMED = 8;

/** A change of a row, as the stream of its relation tells it. */
interface RowEvent {
  readonly type: 'created' | 'updated' | 'deleted';
  readonly key: string;
  readonly row: Row;
}

/** The rows of a relation, filtered, sorted and page by page; changes of others are marked as they come. */
export function RowTable({
  relation,
  relations,
  query,
  fixed = {},
  version = 0,
  onQuery,
}: {
  relation: Relation;
  relations: readonly Relation[];
  /** Filters, order and position, as parameters of the list. */
  query: Query;
  /** Filters that cannot be removed. */
  fixed?: Query;
  /** The rows are read again when it changes. */
  version?: number;
  onQuery: (query: Query) => void;
}) {
  const filters = { ...filtersIn(query), ...fixed };
  const { sort, cursor } = query;
  const named = namedIn(relation, relations);
  const path = listPath(
    relation,
    { ...filters, ...(sort && { sort }), ...(cursor && { cursor }), limit: LIMIT },
    [
      '*',
      ...named.map(({ name, target }) => `${name}(${[...new Set([...target.key, ...labelsOf(target)])]})`),
    ],
  );
  const [round, setRound] = useState(0);
  const again = () => setRound((before) => before + 1);
  // The fragment is not sent; another one reads the rows again.
  const fresh = `#${version}.${round}`;
  const { value, error } = useData(path + fresh, undefined, readPage);
  const counted = listPath(relation, { ...filters, limit: '1' }, relation.key);
  const count = useData(counted + fresh, undefined, readCount);
  const { marks, changed, others } = useMarks(relation, value?.rows ?? [], path + fresh, again);

  const isFiltered = Object.keys(filtersIn(query)).length > 0;
  const turn = (to: string | undefined) =>
    to === undefined ? undefined : () => onQuery({ ...query, cursor: to });
  const { cursor: _, ...first } = query;
  return (
    <>
      <RowFilters
        relation={relation}
        query={query}
        onChange={(wanted) => onQuery({ ...wanted, ...(sort && { sort }) })}
      />
      {others > 0 && (
        <Notice tone="info">
          {others === 1 ? 'A row has' : `${others} rows have`} been created since.{' '}
          <button type="button" className="button small" onClick={again}>
            Read again
          </button>
        </Notice>
      )}
      <Card>
        {value === undefined || error !== undefined ? (
          <Waiting error={error} what={`The list of ${relation.name}`} />
        ) : value.rows.length === 0 && cursor === undefined ? (
          <Empty icon="search" title={isFiltered ? 'No matching rows' : 'No rows'} />
        ) : (
          <DataTable
            label={`Rows of ${relation.name}`}
            rows={value.rows.map((row) => changed.get(keyOf(relation, row)) ?? row)}
            keyOf={(row) => keyOf(relation, row)}
            rowClass={(row) => marks.get(keyOf(relation, row)) ?? ''}
            columns={columnsOf(relation, named, marks)}
            sort={sort ?? relation.key.join()}
            onSort={(wanted) => onQuery({ ...filtersIn(query), sort: wanted })}
          />
        )}
        {value !== undefined && error === undefined && (
          <Pager
            actions={
              <span className="note">
                {count.value === undefined || Number.isNaN(count.value)
                  ? ''
                  : `${count.value.toLocaleString('en')} ${count.value === 1 ? 'row' : 'rows'}`}
              </span>
            }
            pages={
              cursor === undefined && value.next === undefined
                ? []
                : [
                    { title: 'First', onGo: cursor === undefined ? undefined : () => onQuery(first) },
                    { title: 'Previous', onGo: turn(value.prev) },
                    { title: 'Next', onGo: turn(value.next) },
                  ]
            }
          />
        )}
      </Card>
    </>
  );
}

interface Named {
  /** The name of the reference. */
  readonly name: string;
  readonly column: string;
  readonly target: Relation;
}

/** The references whose rows the table names. */
function namedIn(relation: Relation, relations: readonly Relation[]): readonly Named[] {
  return relation.references
    .flatMap(({ name, to, columns: [column = '', ...more] }) => {
      const target = relations.find((each) => each.name === to);
      return target === undefined || more.length > 0 ? [] : [{ name, column, target }];
    })
    .slice(0, MAX_NAMED);
}

/** The path of a list below /rows. */
function listPath(relation: Relation, query: Query, fields: readonly string[]): string {
  return `${encodeURIComponent(relation.name)}?${new URLSearchParams({ ...query, fields: fields.join() })}`;
}

const NUMBERS = ['serial', 'integer', 'bigint', 'decimal', 'number'];

function columnsOf(
  relation: Relation,
  named: readonly Named[],
  marks: ReadonlyMap<string, string>,
): readonly Column<Row>[] {
  const shown = [...relation.columns.filter(({ name }) => relation.key.includes(name))];
  const others = relation.columns.filter(({ name }) => !relation.key.includes(name));
  const cellOf = (column: Field) => (row: Row) => {
    const own = named.find((each) => each.column === column.name);
    const reference = own && referenceOf(relation, column.name);
    const key = own && reference && referredKey(reference, own.target, row);
    if (own === undefined || key === undefined) return <Value column={column} value={row[column.name]} />;
    return (
      <RowName target={own.target} keyText={key} row={(row[own.name] ?? undefined) as Row | undefined} />
    );
  };
  const columnOf = (column: Field): Column<Row> => ({
    title: column.name,
    className: NUMBERS.includes(column.kind) && !isNamed(named, column) ? 'number' : 'cut',
    ...(isSorted(column) && { sort: column.name }),
    cell: cellOf(column),
  });
  const head: Column<Row> = {
    title: shown.some((column) => isNamed(named, column)) ? 'key' : shown.map(({ name }) => name).join(', '),
    isRowHead: true,
    className: 'cut',
    ...(shown.length === 1 && { sort: shown[0]?.name ?? '' }),
    cell: (row) => {
      const key = keyOf(relation, row);
      return (
        <>
          <a href={rowLink(relation.name, key)}>{decodeURIComponent(key)}</a>
          {marks.has(key) && <small> {marks.get(key)}</small>}
        </>
      );
    },
  };
  // A key of references is worth its rows' names too.
  return [head, ...shown.filter((column) => isNamed(named, column)), ...others].map((column) =>
    'kind' in column ? columnOf(column) : column,
  );
}

const isNamed = (named: readonly Named[], { name }: Field) => named.some(({ column }) => column === name);

/** Keys of new rows that are counted. */
const MAX_COUNTED = 1_000;

/** The changes since rows were read: of those that are shown, by key, and how many others are new. */
function useMarks(relation: Relation, rows: readonly Row[], read: string, onGap: () => void) {
  const none = { read, events: new Map<string, RowEvent>(), created: new Set<string>() };
  const [seen, setSeen] = useState(none);
  const { events, created } = seen.read === read ? seen : none;
  const take = (event: RowEvent) =>
    setSeen((before) => {
      const known = before.read === read ? before : none;
      const isShown = rows.some((row) => keyOf(relation, row) === event.key);
      if (isShown || rows.length === 0)
        return {
          ...known,
          events: new Map([...known.events, [event.key, event] as const].slice(-MAX_COUNTED)),
        };
      if (event.type === 'updated' || known.created.size >= MAX_COUNTED) return known;
      const others = new Set(known.created);
      if (event.type === 'created') others.add(event.key);
      else others.delete(event.key);
      return { ...known, created: others };
    });
  const { name, one, isFollowed } = relation;
  useStream(
    isFollowed ? `rows/${encodeURIComponent(name)}?lastEventId=` : undefined,
    { [`${one}.created`]: take, [`${one}.updated`]: take, [`${one}.deleted`]: take },
    '',
    onGap,
  );
  const shown = new Map(rows.map((row) => [keyOf(relation, row), row]));
  const marks = new Map<string, string>();
  const changed = new Map<string, Row>();
  let others = [...created].filter((key) => !shown.has(key)).length;
  for (const [key, { type, row }] of events) {
    const before = shown.get(key);
    if (before === undefined) others += Number(type === 'created');
    else {
      if (type === 'deleted') marks.set(key, 'deleted');
      if (!isOther(relation, before, row)) continue;
      if (type !== 'deleted') marks.set(key, 'changed');
      changed.set(key, merged(relation, before, row));
    }
  }
  return { marks, changed, others };
}

/** Whether a column has another value. */
function isOther({ columns }: Relation, before: Row, after: Row): boolean {
  return columns.some(({ name }) => textOf(before[name]) !== textOf(after[name]));
}

/** A shown row with the columns of a later one; the name of another row that it refers to is not known. */
function merged(relation: Relation, before: Row, after: Row): Row {
  const stale = relation.references.filter(({ columns }) =>
    columns.some((column) => before[column] !== after[column]),
  );
  return { ...before, ...after, ...Object.fromEntries(stale.map(({ name }) => [name, undefined])) };
}
