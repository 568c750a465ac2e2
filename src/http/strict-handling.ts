import type { IncomingHttpHeaders } from 'node:http';
import { splitList } from './weighted-list.ts';

/**
 * The value of a preference in a Prefer header (RFC 7240): `strict` of `handling=strict`, empty for one without a value,
 * undefined for one that is not there. `name` is in lower case; of several with one name the first counts.
 */
export function preference(header: unknown, name: string): string | undefined {
  if (typeof header !== 'string') return undefined;
  for (const member of splitList(header, ',')) {
    const [first = ''] = splitList(member, ';');
    const equals = first.indexOf('=');
    const key = equals === -1 ? first : first.slice(0, equals);
    if (key.trim().toLowerCase() !== name) continue;
    return equals === -1 ? '' : unquoted(first.slice(equals + 1).trim());
  }
  return undefined;
}

/** Whether a client asks for HTTP's own status where the contract bends one: `Prefer: handling=strict`. */
export function handlesStrictly({ prefer }: Readonly<IncomingHttpHeaders>): boolean {
  return prefer !== undefined && preference(prefer, 'handling')?.toLowerCase() === 'strict';
}

/** Says that a reply has HTTP's own status because the client asked for it. */
export const STRICT_APPLIED = { 'preference-applied': 'handling=strict', vary: 'prefer' } as const;

function unquoted(word: string): string {
  return word.startsWith('"') ? word.slice(1, -1).replace(/\\(.)/g, '$1') : word;
}
