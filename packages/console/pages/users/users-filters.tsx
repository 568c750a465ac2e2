import { useEffect, useState } from 'react';
import { Icon } from '../../parts/icon.tsx';

/** The filters for users: parameters of REST with labels. */
export const FILTERS = [
  ['q', 'Name or email contains'],
  ['name:prefix', 'Name begins with'],
  ['name', 'Name is'],
  ['email:prefix', 'Email begins with'],
  ['email', 'Email is'],
  ['id', 'Id is'],
] as const;

/** Finds users by one filter at a time. */
export function UserFilters({
  field,
  text,
  onFind,
}: {
  field: string;
  text: string;
  onFind: (field: string, text: string) => void;
}) {
  const [picked, setPicked] = useState(field);
  const [typed, setTyped] = useState(text);
  useEffect(() => {
    setPicked(field);
    setTyped(text);
  }, [field, text]);
  return (
    <form
      className="filters"
      aria-label="Search"
      onSubmit={(event) => {
        event.preventDefault();
        onFind(picked, typed.trim());
      }}
    >
      <label className="field">
        <span>Find by</span>
        <select value={picked} onChange={({ currentTarget }) => setPicked(currentTarget.value)}>
          {FILTERS.map(([name, words]) => (
            <option key={name} value={name}>
              {words}
            </option>
          ))}
        </select>
      </label>
      <label className="field wide">
        <span>Search for</span>
        <input
          type="search"
          placeholder="ada"
          value={typed}
          onChange={({ currentTarget }) => setTyped(currentTarget.value)}
        />
      </label>
      <button type="submit" className="button">
        <Icon name="search" />
        Search
      </button>
      {text !== '' && (
        <button type="button" className="button" onClick={() => onFind(field, '')}>
          Clear
        </button>
      )}
    </form>
  );
}
