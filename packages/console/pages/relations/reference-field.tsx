import { useEffect, useId, useRef, useState } from 'react';
import {
  askRows,
  keyOf,
  labelOf,
  labelsOf,
  type Reference,
  type Relation,
  type Row,
  RowsError,
  textOf,
} from '../../data/relations.ts';

/** Time without typing after which rows are looked for, in milliseconds. */
const PAUSE = 200;
const SHOWN = '8';

/** A reference to a row of another relation, which is found by its label or its key. */
export function ReferenceField({
  label,
  hint,
  reference: { own, target },
  value,
  onPick,
}: {
  label: string;
  hint: string;
  reference: { readonly own: Reference; readonly target: Relation };
  /** The value of the column; empty for none. */
  value: string;
  onPick: (value: string) => void;
}) {
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  const [typed, setTyped] = useState<string>();
  const [found, setFound] = useState<readonly Row[]>([]);
  const [problem, setProblem] = useState('');
  const [active, setActive] = useState(-1);
  const [column = ''] = own.targetColumns;
  const name = useName(target, column, value);
  const valueIn = (row: Row) => textOf(row[column]);

  useEffect(() => {
    if (!isOpen) return;
    const abort = new AbortController();
    const timer = setTimeout(
      () =>
        search(target, column, typed ?? '', abort.signal).then(
          (rows) => {
            setFound(rows);
            setProblem('');
            setActive(-1);
          },
          (error: unknown) => {
            if (abort.signal.aborted) return;
            setFound([]);
            setProblem((error as Error).message);
          },
        ),
      typed === undefined ? 0 : PAUSE,
    );
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [isOpen, typed, target, column]);

  const close = () => {
    setOpen(false);
    setTyped(undefined);
    setActive(-1);
  };
  const pick = (row: Row) => {
    onPick(valueIn(row));
    close();
  };
  const step = (by: number) => {
    setOpen(true);
    if (found.length > 0) setActive((active + by + found.length) % found.length);
  };
  const onKeyDown = (event: { readonly key: string; preventDefault(): void }) => {
    const chosen = found[active];
    if (event.key === 'ArrowDown') step(1);
    else if (event.key === 'ArrowUp') step(active === -1 ? 0 : -1);
    else if (event.key === 'Enter' && isOpen && chosen !== undefined) pick(chosen);
    else if (event.key === 'Escape' && isOpen) close();
    else return;
    event.preventDefault();
  };
  const box = useRef<HTMLElement | null>(null);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only notes that the focus has left.
    <div
      className="field reference"
      ref={box}
      onBlur={({ relatedTarget }: { readonly relatedTarget: unknown }) => {
        if (box.current?.contains(relatedTarget as Node | null) === true) return;
        // A typed text that was not picked is a key.
        if (typed !== undefined && typed.trim() !== value) onPick(typed.trim());
        close();
      }}
    >
      <label htmlFor={id}>
        <span>
          {label} <small>{hint}</small>
        </span>
      </label>
      <input
        id={id}
        type="text"
        role="combobox"
        autoComplete="off"
        aria-expanded={isOpen}
        aria-controls={`${id}-list`}
        aria-activedescendant={active === -1 ? undefined : `${id}-${active}`}
        value={typed ?? value}
        placeholder={`Search in ${target.name}, or a key`}
        onChange={({ currentTarget }) => {
          setTyped(currentTarget.value);
          setOpen(true);
        }}
        onClick={() => setOpen(true)}
        onKeyDown={onKeyDown}
      />
      {name !== '' && !isOpen && <small className="reference-name">{name}</small>}
      {isOpen && (
        <div className="found">
          {problem !== '' && <p className="error-text">{problem}</p>}
          {problem === '' && found.length === 0 && <p className="quiet">Nothing found</p>}
          <div id={`${id}-list`} role="listbox" aria-label={`Rows of ${target.name}`}>
            {found.map((row, i) => (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the keys go to the field, which keeps the focus.
              <div
                key={keyOf(target, row)}
                id={`${id}-${i}`}
                role="option"
                tabIndex={-1}
                aria-selected={i === active}
                onClick={() => pick(row)}
              >
                {labelOf(target, row).slice(0, 80)} <small>{valueIn(row)}</small>
              </div>
            ))}
          </div>
        </div>
      )}
    </div>
  );
}

const pathOf = ({ name }: Relation, query: Readonly<Record<string, string>>) =>
  `${encodeURIComponent(name)}?${new URLSearchParams(query)}`;

/** Texts that may be keys, by the kind of the key; others find nothing by it. */
const MAY_BE: Readonly<Record<string, RegExp>> = {
  serial: /^\d{1,15}$/,
  integer: /^-?\d{1,15}$/,
  bigint: /^-?\d{1,18}$/,
  uuid: /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i,
  decimal: /^-?\d{1,12}(?:\.\d+)?$/,
  date: /^\d{4}-\d\d-\d\d$/,
  timestamp: /^\d{4}-\d\d-\d\dT/,
};

/** Rows whose label contains a text, or begins with it where only that has an index; and the row with this key. */
async function search(
  target: Relation,
  column: string,
  typed: string,
  signal: AbortSignal,
): Promise<readonly Row[]> {
  const text = typed.trim();
  const labels = labelsOf(target);
  const fields = [...new Set([...target.key, column, ...labels])].join();
  const rowsOf = async (query: Readonly<Record<string, string>>) => {
    const found = await askRows(pathOf(target, { fields, limit: SHOWN, ...query }), { signal });
    return (await found.json()) as readonly Row[];
  };
  if (text === '') return rowsOf({});
  const kind = target.columns.find(({ name }) => name === column)?.kind ?? '';
  const byKey = MAY_BE[kind]?.test(text) === false ? [] : await rowsOf({ [column]: text });
  if (labels.length === 0) return byKey;
  const forms = [...new Set([text, text.toLowerCase(), text.charAt(0).toUpperCase() + text.slice(1)])];
  const byLabel = (test: string) =>
    rowsOf({
      where: JSON.stringify({
        or: labels.flatMap((name) => forms.map((form) => ({ [name]: { [test]: form } }))),
      }),
    });
  const others = await byLabel('contains').catch((error: unknown) => {
    if (error instanceof RowsError && error.code === 'SEARCH_OFF')
      return rowsOf({ [`${labels[0]}:prefix`]: text, sort: labels[0] ?? '' });
    throw error;
  });
  const known = new Set(byKey.map((row) => keyOf(target, row)));
  return [...byKey, ...others.filter((row) => !known.has(keyOf(target, row)))];
}

/** The label of the row with a key; empty if there is none. */
function useName(target: Relation, column: string, value: string): string {
  const [named, setNamed] = useState({ value: '', name: '' });
  useEffect(() => {
    if (value === '' || labelsOf(target).length === 0) return;
    const abort = new AbortController();
    const query = { [column]: value, fields: labelsOf(target).join(), limit: '1' };
    askRows(pathOf(target, query), { signal: abort.signal })
      .then((response) => response.json())
      .then(([row]: readonly Row[]) => {
        setNamed({ value, name: row === undefined ? 'no such row' : labelOf(target, row).slice(0, 80) });
      })
      .catch(() => {});
    return () => abort.abort();
  }, [target, column, value]);
  return named.value === value ? named.name : '';
}
