import type { Exchange } from './endpoint.ts';
import { parseWeightedList } from './weighted-list.ts';

/** The preferences of a request (RFC 7240), by name in lower case; the first one of a name counts. */
export function preferences({ headers }: Pick<Exchange, 'headers'>): ReadonlyMap<string, string> {
  const { prefer } = headers;
  const found = new Map<string, string>();
  // Node joins the lines of this field.
  for (const { name } of parseWeightedList(typeof prefer === 'string' ? prefer : '')) {
    const equals = name.indexOf('=');
    const key = (equals === -1 ? name : name.slice(0, equals)).trim();
    const value = equals === -1 ? '' : name.slice(equals + 1).trim();
    if (!found.has(key)) found.set(key, value);
  }
  return found;
}
