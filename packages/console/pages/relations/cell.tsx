import { formatBytes } from '../../data/format.ts';
import {
  type Field,
  keyOf,
  labelOf,
  type Reference,
  type Relation,
  type Row,
  rowLink,
  textOf,
} from '../../data/relations.ts';

/** Longest text of a cell; the page of the row has the rest. */
const MAX_TEXT = 160;

/** A value of a row. */
export function Value({ column: { kind }, value }: { column: Field; value: unknown }) {
  if (value === null || value === undefined) return <span className="quiet">null</span>;
  if (kind === 'bytes') return <span className="quiet">{formatBytes(bytesIn(String(value)))}</span>;
  const text = textOf(value);
  if (text === '') return <span className="quiet">empty</span>;
  if (kind === 'timestamp') return <>{text.replace('T', ' ').replace(/(?:\.000)?Z$/, ' UTC')}</>;
  // A cut between the halves of a character would show neither.
  return <>{text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT).replace(/[\ud800-\udbff]$/, '')}…` : text}</>;
}

/** The number of bytes that a text in base64 stands for. */
function bytesIn(base64: string): number {
  return (base64.length / 4) * 3 - (/=*$/.exec(base64)?.[0].length ?? 0);
}

/** The reference of one column, if its relation is shown. */
export function referenceOf(relation: Relation, column: string): Reference | undefined {
  return relation.references.find(({ columns }) => columns.length === 1 && columns[0] === column);
}

/** A row that another one refers to. */
export function RowName({
  target,
  keyText,
  row,
}: {
  target: Relation;
  /** The key as in paths. */
  keyText: string;
  row: Row | undefined;
}) {
  const label = row === undefined ? '' : labelOf(target, row);
  return (
    <a href={rowLink(target.name, keyText)}>
      {label === '' ? decodeURIComponent(keyText) : label.slice(0, 80)}
      {label !== '' && <small> {decodeURIComponent(keyText)}</small>}
    </a>
  );
}

/** The path of the row to which a row refers; undefined if it refers to none. */
export function referredKey(reference: Reference, target: Relation, row: Row): string | undefined {
  const values = Object.fromEntries(
    reference.targetColumns.map((name, i) => [name, row[reference.columns[i] ?? '']] as const),
  );
  if (Object.values(values).some((value) => value === null || value === undefined)) return undefined;
  return keyOf(target, values);
}
