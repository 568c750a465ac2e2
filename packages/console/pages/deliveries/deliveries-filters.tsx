import { useEffect, useState } from 'react';
import { FILTERS, STATUSES } from '../../data/deliveries.ts';
import { goTo, linkTo } from '../../data/route.ts';
import { Icon } from '../../parts/icon.tsx';

const SINCE = [
  ['', 'Any time'],
  ['15m', 'Last 15 minutes'],
  ['1h', 'Last hour'],
  ['24h', 'Last 24 hours'],
  ['7d', 'Last 7 days'],
] as const;

type Values = Readonly<Record<string, string>>;

/** The filters of the list. They are kept in the URL, so that a view can be shared. */
export function Filters({ query }: { query: URLSearchParams }) {
  const inUrl = query.toString();
  const [values, setValues] = useState<Values>({});
  useEffect(() => {
    setValues(Object.fromEntries(new URLSearchParams(inUrl)));
  }, [inUrl]);

  const apply = (changed: Values) => {
    setValues(changed);
    const given = FILTERS.map((name) => [name, changed[name]?.trim() || undefined]);
    goTo(linkTo('deliveries', '', Object.fromEntries(given)), true);
  };
  const typed = (name: string, label: string, hint: string, className = '') => (
    <label className={`field ${className}`}>
      <span>{label}</span>
      <input
        type="text"
        placeholder={hint}
        value={values[name] ?? ''}
        onChange={({ currentTarget }) => setValues({ ...values, [name]: currentTarget.value })}
      />
    </label>
  );
  const since = values.since ?? '';
  const isOther = since !== '' && !SINCE.some(([each]) => each === since);
  const isFiltered = FILTERS.some((name) => query.get(name));
  return (
    <form
      className="filters"
      aria-label="Filters"
      onSubmit={(event) => {
        event.preventDefault();
        apply(values);
      }}
    >
      <label className="field">
        <span>Status</span>
        <select
          value={values.status ?? ''}
          onChange={({ currentTarget }) => apply({ ...values, status: currentTarget.value })}
        >
          <option value="">Any</option>
          {STATUSES.map((status) => (
            <option key={status} value={status}>
              {status}
            </option>
          ))}
        </select>
      </label>
      <label className="field">
        <span>Received</span>
        <select
          value={since}
          onChange={({ currentTarget }) => apply({ ...values, since: currentTarget.value })}
        >
          {SINCE.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
          {isOther && <option value={since}>Since {since}</option>}
        </select>
      </label>
      <label className="field">
        <span>Before</span>
        <input
          type="datetime-local"
          value={localTime(values.until)}
          onChange={({ currentTarget }) => apply({ ...values, until: isoTime(currentTarget.value) })}
        />
      </label>
      {typed('event', 'Event', 'new_commit')}
      {typed('source', 'Source', 'github')}
      {typed('text', 'Text in the body', 'customer or id', 'wide')}
      <button type="submit" className="button">
        <Icon name="search" />
        Filter
      </button>
      {isFiltered && (
        <button type="button" className="button" onClick={() => apply({})}>
          Clear
        </button>
      )}
    </form>
  );
}

/** A time from the URL in the field's format, in the browser's time zone; empty if it cannot be shown. */
function localTime(moment = ''): string {
  const at = new Date(moment);
  if (Number.isNaN(at.getTime())) return '';
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function isoTime(local: string): string {
  return local === '' ? '' : new Date(local).toISOString();
}
