import { useEffect, useState } from 'react';
import { Icon } from './icon.tsx';

/** The values of filters by name; an empty one is not set. */
type FilterValues = Readonly<Record<string, string>>;

type Options = readonly (readonly [value: string, text: string])[];

/** One filter of a list. */
export type Filter = {
  readonly name: string;
  readonly label: string;
} & (
  | {
      readonly kind: 'choice';
      readonly options: Options;
      /** Applies with the other filters when the user submits, rather than at once. */
      readonly isDeferred?: boolean;
    }
  | { readonly kind: 'text'; readonly hint: string; readonly isWide?: boolean }
  | { readonly kind: 'time' }
);

/**
 * The filters of a list. A choice or time applies at once, a text when the user submits it. `isLive` applies
 * texts while the user types, which suits lists that are filtered in the page.
 */
export function Filters({
  filters,
  values: given,
  isLive = false,
  submit = 'Filter',
  onApply,
}: {
  filters: readonly Filter[];
  values: FilterValues;
  isLive?: boolean;
  submit?: string;
  onApply: (values: FilterValues) => void;
}) {
  const [values, setValues] = useState(given);
  const known = new URLSearchParams({ ...given }).toString();
  useEffect(() => setValues(Object.fromEntries(new URLSearchParams(known))), [known]);

  const change = (name: string, value: string, isApplied: boolean) => {
    const changed = { ...values, [name]: value };
    setValues(changed);
    if (isApplied) onApply(trimmed(changed));
  };
  const hasTexts = filters.some(({ kind }) => kind === 'text');
  const isSet = filters.some((each) => given[each.name] && !('isDeferred' in each));
  return (
    <form
      className="filters"
      aria-label={submit === 'Filter' ? 'Filters' : submit}
      onSubmit={(event) => {
        event.preventDefault();
        onApply(trimmed(values));
      }}
    >
      {filters.map((filter) => {
        const { name, label } = filter;
        const value = values[name] ?? '';
        if (filter.kind === 'choice') {
          const { options, isDeferred = false } = filter;
          const pick = (picked: string) => change(name, picked, !isDeferred);
          return <Choice key={name} label={label} options={options} value={value} onPick={pick} />;
        }
        const isTime = filter.kind === 'time';
        return (
          <label key={name} className={!isTime && filter.isWide ? 'field wide' : 'field'}>
            <span>{label}</span>
            <input
              type={isTime ? 'datetime-local' : 'search'}
              placeholder={isTime ? undefined : filter.hint}
              value={isTime ? localTime(value) : value}
              onChange={({ currentTarget: { value: typed } }) =>
                change(name, isTime ? isoTime(typed) : typed, isTime || isLive)
              }
            />
          </label>
        );
      })}
      {hasTexts && !isLive && (
        <>
          <button type="submit" className="button">
            <Icon name="search" />
            {submit}
          </button>
          {isSet && (
            <button type="button" className="button" onClick={() => onApply({})}>
              Clear
            </button>
          )}
        </>
      )}
    </form>
  );
}

/** A choice with a label. An unknown value, such as one from the URL, is an option too. */
export function Choice({
  label,
  options,
  value,
  describedBy,
  isInvalid,
  onPick,
}: {
  label: string;
  options: Options;
  value: string;
  /** The ids of texts about it. */
  describedBy?: string;
  isInvalid?: boolean;
  onPick: (value: string) => void;
}) {
  return (
    <label className="field">
      <span>{label}</span>
      <select
        value={value}
        aria-describedby={describedBy}
        aria-invalid={isInvalid}
        onChange={({ currentTarget }) => onPick(currentTarget.value)}
      >
        {options.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
        {!options.some(([each]) => each === value) && <option value={value}>{value}</option>}
      </select>
    </label>
  );
}

function trimmed(values: FilterValues): FilterValues {
  const set = Object.entries(values).map(([name, value]) => [name, value.trim()] as const);
  return Object.fromEntries(set.filter(([, value]) => value !== ''));
}

/** A time from the URL in the field's format, in the browser's time zone; empty if it cannot be shown. */
export function localTime(moment: string): string {
  const at = new Date(moment);
  if (Number.isNaN(at.getTime())) return '';
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function isoTime(local: string): string {
  return local === '' ? '' : new Date(local).toISOString();
}
