import { readUserId } from '../user-id.ts';
import type { TextField, UserFilter } from '../user-list.ts';
import { invalidParameter } from './refusals.ts';

/** Maximum number of values that one filter takes. */
const MAX_VALUES = 100;
/** Longer than any name or email, in characters. */
const MAX_TEXT = 500;

/** The filters of a list. One that comes several times takes any of its values. */
export const FILTERS = [
  'id',
  'name',
  'name:prefix',
  'name:contains',
  'email',
  'email:prefix',
  'email:contains',
  'q',
] as const;

/** Reads a filter. Throws HttpProblem. */
export function readFilter(name: string, values: readonly string[]): UserFilter {
  if (values.length > MAX_VALUES) throw invalidParameter(name, `at most ${MAX_VALUES} values`);
  if (name === 'id') return { field: 'id', match: 'exact', values: values.map(idOf) };
  for (const value of values) {
    if (value === '' || value.length > MAX_TEXT || value.includes('\0') || !value.isWellFormed()) {
      throw invalidParameter(name, `a text of 1 to ${MAX_TEXT} characters`);
    }
  }
  const [field, match = 'exact'] = name.split(':') as [TextField | 'q', 'prefix' | 'contains' | undefined];
  if (match === 'exact' && field !== 'q') return { field, match, values };
  const [text = '', ...more] = values;
  if (more.length > 0) throw invalidParameter(name, 'one value');
  if (field === 'q') return { field: 'any', match: 'contains', text };
  return match === 'prefix' ? { field, match, text } : { field, match: 'contains', text };
}

function idOf(text: string): number {
  const id = readUserId(text);
  if (id === undefined) throw invalidParameter('id', 'an id, a whole number from 1 on');
  return id;
}
