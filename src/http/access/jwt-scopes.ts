import { type JsonPointer, parsePointer, valueAt } from '../../core/json-pointer.ts';

/** Reads the scopes of a token's claims. */
export type ReadScopes = (claims: Readonly<Record<string, unknown>>) => ReadonlySet<string>;

/** Makes what reads the scopes from a claim, which is named or pointed to: texts with spaces between them (RFC 8693), or a list. */
export function scopesReader(claim: string): ReadScopes {
  const pointer: JsonPointer = claim.startsWith('/') ? (parsePointer(claim) ?? [claim]) : [claim];
  return (claims) => {
    const given = [valueAt(claims, pointer)].flat();
    const texts = given.filter((each) => typeof each === 'string');
    return new Set(texts.flatMap((each) => each.split(' ')).filter((scope) => scope !== ''));
  };
}
