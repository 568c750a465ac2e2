import { useState } from 'react';
import type { Field, Relation } from '../../data/relations.ts';
import { Choice } from '../../parts/filters.tsx';
import { Icon } from '../../parts/icon.tsx';

type Query = Readonly<Record<string, string>>;

/** The other parameters of a list. */
const OTHERS = ['sort', 'cursor'];

/** The filters in the parameters of a list. */
export function filtersIn(query: Query): Query {
  return Object.fromEntries(Object.entries(query).filter(([name]) => !OTHERS.includes(name)));
}

const COMPARED: readonly (readonly [test: string, text: string])[] = [
  ['', 'is'],
  ['not', 'is not'],
  ['gte', 'from'],
  ['lte', 'up to'],
  ['gt', 'above'],
  ['lt', 'below'],
];
const CHOSEN = COMPARED.slice(0, 2);
const IS_NULL = ['null', 'has a value'] as const;

/** The tests of a column, as parameters name them, each with its words. */
function testsOf({ kind, nullable }: Field): readonly (readonly [test: string, text: string])[] {
  const own = {
    text: [['contains', 'contains'], ['prefix', 'begins with'], ...COMPARED],
    boolean: CHOSEN.slice(0, 1),
    enum: CHOSEN,
    uuid: CHOSEN,
    bytes: CHOSEN,
    json: [],
  }[kind] as typeof COMPARED | undefined;
  return [...(own ?? COMPARED), ...(nullable ? [IS_NULL] : [])];
}

/** The choices of a value; undefined if it is typed. */
function valuesOf({ kind, values }: Field, test: string): readonly string[] | undefined {
  if (test === 'null' || kind === 'boolean') return ['true', 'false'];
  return kind === 'enum' ? values : undefined;
}

const HINTS: Readonly<Record<string, string>> = {
  date: '2026-02-28',
  timestamp: '2026-02-28T12:00:00Z',
  decimal: '9.90',
};

/** The filters of a list of rows: those that hold, and the form that adds one. */
export function RowFilters({
  relation,
  query,
  onChange,
}: {
  relation: Relation;
  query: Query;
  onChange: (filters: Query) => void;
}) {
  const columns = relation.columns.filter((column) => testsOf(column).length > 0);
  const [name, setName] = useState(
    () => (columns.find(({ kind }) => kind === 'text') ?? columns[0])?.name ?? '',
  );
  const column = columns.find((each) => each.name === name);
  const tests = column === undefined ? [] : testsOf(column);
  const [picked, setTest] = useState<string>();
  const test = tests.find(([each]) => each === picked)?.[0] ?? tests[0]?.[0] ?? '';
  const choices = column && valuesOf(column, test);
  const [typed, setTyped] = useState('');
  const value = choices === undefined || choices.includes(typed) ? typed : (choices[0] ?? '');

  const filters = filtersIn(query);
  const parameter = test === '' ? name : `${name}:${test}`;
  return (
    <>
      <form
        className="filters"
        aria-label="Filters"
        onSubmit={(event) => {
          event.preventDefault();
          if (value === '') return;
          onChange({ ...filters, [parameter]: value });
          setTyped('');
        }}
      >
        <Choice
          label="Column"
          options={columns.map((each) => [each.name, each.name])}
          value={name}
          onPick={setName}
        />
        <Choice label="Test" options={tests} value={test} onPick={setTest} />
        {choices === undefined ? (
          <label className="field wide">
            <span>Value</span>
            <input
              type="search"
              placeholder={HINTS[column?.kind ?? '']}
              value={typed}
              onChange={({ currentTarget }) => setTyped(currentTarget.value)}
            />
          </label>
        ) : (
          <Choice
            label="Value"
            options={choices.map((each) => [each, test === 'null' ? (each === 'true' ? 'no' : 'yes') : each])}
            value={value}
            onPick={setTyped}
          />
        )}
        <button type="submit" className="button">
          <Icon name="search" />
          Filter
        </button>
      </form>
      {Object.keys(filters).length > 0 && (
        <ul className="chips" aria-label="Filters that hold">
          {Object.entries(filters).map(([each, wanted]) => (
            <li key={each}>
              <button
                type="button"
                className="button small"
                aria-label={`Remove the filter ${wordsOf(relation, each, wanted)}`}
                onClick={() =>
                  onChange(Object.fromEntries(Object.entries(filters).filter(([n]) => n !== each)))
                }
              >
                <span className="cut">{wordsOf(relation, each, wanted)}</span>
                <Icon name="close" />
              </button>
            </li>
          ))}
          <li>
            <button type="button" className="button small" onClick={() => onChange({})}>
              Clear
            </button>
          </li>
        </ul>
      )}
    </>
  );
}

/** A filter in words: `price from 10`. */
function wordsOf({ columns }: Relation, parameter: string, value: string): string {
  const [name = '', test = ''] = parameter.split(':');
  if (test === 'null') return `${name} ${value === 'true' ? 'has no value' : 'has a value'}`;
  const column = columns.find((each) => each.name === name);
  const words = column && testsOf(column).find(([each]) => each === test)?.[1];
  return words === undefined ? `${parameter} ${value}` : `${name} ${words} ${value}`;
}
