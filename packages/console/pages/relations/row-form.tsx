import { useState } from 'react';
import { askRows, type Field, type Relation, type Row, RowsError } from '../../data/relations.ts';
import { Notice } from '../../parts/parts.tsx';
import { referenceOf, Value } from './cell.tsx';
import { type Draft, draftOf, jsonOf, ValueField } from './value-field.tsx';

/** A stored row, as it was read. */
export interface StoredRow {
  readonly row: Row;
  readonly etag: string;
}

type Drafts = Readonly<Record<string, Draft>>;
type Faults = Readonly<Record<string, readonly string[]>>;

/** What a form is about, and what it says. */
export interface RowForm {
  readonly relation: Relation;
  readonly relations: readonly Relation[];
  readonly stored: StoredRow | undefined;
  readonly drafts: Drafts;
  readonly faults: Faults;
  /** A fault that concerns no column. */
  readonly problem: string;
  /** The columns that another writer has changed since the row was read. */
  readonly theirs: Row | undefined;
  readonly isChanged: boolean;
  change(column: string, draft: Draft): void;
  /** Begins anew with a row. */
  reset(stored: StoredRow): void;
  /** Stores the row if nothing is wrong with it. */
  save(): Promise<Row | undefined>;
}

/** The form of a stored row, or of a new one that has some columns already. */
export function useRowForm(
  relation: Relation,
  relations: readonly Relation[],
  initial: StoredRow | Row,
): RowForm {
  const first = 'etag' in initial && 'row' in initial ? (initial as StoredRow) : undefined;
  const begun = first === undefined ? startOf(relation, initial as Row) : {};
  const [stored, setStored] = useState(first);
  const [drafts, setDrafts] = useState<Drafts>(begun);
  const [faults, setFaults] = useState<Faults>({});
  const [problem, setProblem] = useState('');
  const [theirs, setTheirs] = useState<Row>();
  const isNew = stored === undefined;

  const clear = () => {
    setFaults({});
    setProblem('');
  };
  const told = (error: unknown) => {
    const listed = error instanceof RowsError ? error.faults : [];
    const byColumn = Map.groupBy(listed, ({ pointer }) => columnAt(relation, pointer));
    const others = byColumn.get('')?.map(({ detail }) => detail) ?? [];
    byColumn.delete('');
    setFaults(
      Object.fromEntries(Array.from(byColumn, ([name, own]) => [name, own.map(({ detail }) => detail)])),
    );
    setProblem(byColumn.size > 0 && others.length === 0 ? '' : others.join('; ') || (error as Error).message);
  };

  async function save(): Promise<Row | undefined> {
    clear();
    const { body, wrong } = bodyOf(relation, drafts, stored?.row);
    if (Object.keys(wrong).length > 0) {
      setFaults(wrong);
      return undefined;
    }
    try {
      const path = encodeURIComponent(relation.name);
      const headers = { 'content-type': 'application/json', ...(stored && { 'if-match': stored.etag }) };
      const response =
        stored === undefined
          ? await askRows(path, { method: 'POST', headers, body })
          : await askRows(`${path}/${keyIn(relation, stored.row)}`, { method: 'PATCH', headers, body });
      const row = (await response.json()) as Row;
      reset({ row, etag: response.headers.get('etag') ?? '' });
      return row;
    } catch (error) {
      if (stored !== undefined && error instanceof RowsError && error.status === 412) await compare(stored);
      else told(error);
      return undefined;
    }
  }

  /** Takes over what others have changed, but keeps what this form says. */
  async function compare(before: StoredRow): Promise<void> {
    try {
      const now = await readRow(relation, keyIn(relation, before.row));
      setStored(now);
      setTheirs(
        Object.fromEntries(
          relation.columns
            .filter(({ name }) => JSON.stringify(before.row[name]) !== JSON.stringify(now.row[name]))
            .map(({ name }) => [name, now.row[name]]),
        ),
      );
    } catch (error) {
      setProblem(
        error instanceof RowsError && error.status === 404
          ? 'Another writer has removed this row. What you have typed is still here.'
          : (error as Error).message,
      );
    }
  }

  function reset(next: StoredRow): void {
    setStored(next);
    setDrafts({});
    setTheirs(undefined);
    clear();
  }

  return {
    relation,
    relations,
    stored,
    drafts,
    faults,
    problem,
    theirs,
    isChanged: isNew || Object.keys(changesOf(relation, drafts, stored.row)).length > 0,
    change(column, draft) {
      setDrafts((before) => ({ ...before, [column]: draft }));
    },
    reset,
    save,
  };
}

export async function readRow(relation: Relation, key: string, signal?: AbortSignal): Promise<StoredRow> {
  const response = await askRows(`${encodeURIComponent(relation.name)}/${key}`, signal ? { signal } : {});
  return { row: await response.json(), etag: response.headers.get('etag') ?? '' };
}

function keyIn({ key }: Relation, row: Row): string {
  return key.map((name) => encodeURIComponent(String(row[name]))).join();
}

/** The values of a new row that a form has at once: check boxes are not checked. */
function startOf({ columns }: Relation, given: Row): Drafts {
  const unchecked = columns.filter(
    ({ kind, nullable, default: missing }) => kind === 'boolean' && !nullable && missing === null,
  );
  return {
    ...Object.fromEntries(unchecked.map(({ name }) => [name, 'false'])),
    ...Object.fromEntries(Object.entries(given).map(([name, value]) => [name, String(value)])),
  };
}

/** The drafts that say something else than the stored row. */
function changesOf({ columns }: Relation, drafts: Drafts, row: Row | undefined): Drafts {
  const changed = columns.flatMap((column) => {
    const draft = drafts[column.name];
    if (draft === undefined || (row !== undefined && draft === draftOf(column, row[column.name]))) return [];
    return [[column.name, draft] as const];
  });
  return Object.fromEntries(changed);
}

/** The body of a write, and the faults of texts that should be JSON. A JSON column is sent as it is written. */
function bodyOf(relation: Relation, drafts: Drafts, row: Row | undefined) {
  const members: string[] = [];
  const wrong: Record<string, readonly string[]> = {};
  for (const [name, draft] of Object.entries(changesOf(relation, drafts, row))) {
    const column = relation.columns.find((each) => each.name === name);
    if (column === undefined || draft === undefined) continue;
    try {
      members.push(`${JSON.stringify(name)}:${jsonOf(column, draft)}`);
    } catch (error) {
      wrong[name] = [`This is no JSON: ${(error as Error).message}`];
    }
  }
  return { body: `{${members.join()}}`, wrong };
}

/** The column that a fault is about; empty for the row as a whole, and for columns that the form does not have. */
function columnAt({ columns }: Relation, pointer = ''): string {
  const name = pointer.replace(/^#\//, '');
  return columns.some((column) => column.name === name) ? name : '';
}

/** Whether a form has an input for a column. */
function isInput(relation: Relation, { name, isAssigned, isComputed }: Field, isNew: boolean): boolean {
  return relation.isWritable && !isComputed && !isAssigned && (isNew || !relation.key.includes(name));
}

/** The columns of a form: an input for each that may be written, and the values of the others. */
export function RowFields({ form }: { form: RowForm }) {
  const { relation, relations, stored, drafts, faults, problem, theirs, change } = form;
  const isNew = stored === undefined;
  return (
    <>
      {problem !== '' && <Notice tone="bad">{problem}</Notice>}
      {theirs !== undefined && (
        <Notice tone="warn">
          Another writer has changed this row, and nothing is stored.{' '}
          {Object.keys(theirs).map((name) => (
            <span key={name}>
              <strong>{name}</strong> is now{' '}
              <Value column={columnNamed(relation, name)} value={theirs[name]} />.{' '}
            </span>
          ))}
          Save again to store what you have typed; the other columns stay as they are now.
        </Notice>
      )}
      <div className="row-fields">
        {relation.columns.map((column) => {
          const { name } = column;
          if (!isInput(relation, column, isNew))
            return isNew ? null : <ReadOnly key={name} column={column} value={stored.row[name]} />;
          const own = referenceOf(relation, name);
          const target = own && relations.find((each) => each.name === own.to);
          const reference = own && target && { own, target };
          const draft =
            drafts[name] === undefined && !isNew ? draftOf(column, stored.row[name]) : drafts[name];
          return (
            <ValueField
              key={name}
              column={column}
              value={draft}
              faults={faults[name] ?? []}
              isNew={isNew}
              reference={reference}
              onChange={(next) => change(name, next)}
            />
          );
        })}
      </div>
    </>
  );
}

function columnNamed({ columns }: Relation, name: string): Field {
  const found = columns.find((each) => each.name === name);
  if (found === undefined) throw new Error(`There is no column ${name}`);
  return found;
}

function ReadOnly({ column, value }: { column: Field; value: unknown }) {
  const { name, kind, isComputed } = column;
  const text = kind === 'json' ? JSON.stringify(value, null, 2) : undefined;
  return (
    <div className="row-field field">
      <span>
        {name} <small>{isComputed ? 'computed' : kind}</small>
      </span>
      {typeof value === 'string' && kind === 'text' ? (
        <p className="wrap break">{value}</p>
      ) : text === undefined || value === null ? (
        <p className="break">
          <Value column={column} value={value} />
        </p>
      ) : (
        <pre className="wrap break">{text}</pre>
      )}
    </div>
  );
}
