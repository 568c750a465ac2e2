import type { Exchange } from './endpoint.ts';
import { splitList } from './weighted-list.ts';

/** The preferences of a request (RFC 7240), by name in lower case; the first one of a name counts. */
export function preferences({ headers }: Pick<Exchange, 'headers'>): ReadonlyMap<string, string> {
  const { prefer } = headers;
  const found = new Map<string, string>();
  // Node joins the lines of this field.
  for (const member of splitList(typeof prefer === 'string' ? prefer : '', ',')) {
    const [first = ''] = splitList(member, ';');
    const equals = first.indexOf('=');
    const key = (equals === -1 ? first : first.slice(0, equals)).trim().toLowerCase();
    const value = equals === -1 ? '' : unquoted(first.slice(equals + 1).trim());
    if (key !== '' && !found.has(key)) found.set(key, value.toLowerCase());
  }
  return found;
}

function unquoted(word: string): string {
  return word.startsWith('"') ? word.slice(1, -1).replace(/\\(.)/g, '$1') : word;
}

/** Whether a client asks for HTTP's own status where the contract bends one: `Prefer: handling=strict`. */
export function handlesStrictly({ headers }: Pick<Exchange, 'headers'>): boolean {
  return headers.prefer !== undefined && preferences({ headers }).get('handling') === 'strict';
}

/** Says that a reply has HTTP's own status because the client asked for it. */
export const STRICT_APPLIED = { 'preference-applied': 'handling=strict', vary: 'prefer' } as const;
