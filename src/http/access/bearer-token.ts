import { hash } from 'node:crypto';

/** What a token may consist of (RFC 6750 2.1, b64token). */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;
const SCHEME = 'bearer ';
/** A longer token is none of ours, in characters. */
const MAX_TOKEN = 8 * 1024;

/** The token of an Authorization header, not looked at yet; undefined for another scheme. */
export function bearerToken(header: string): string | undefined {
  if (header.slice(0, SCHEME.length).toLowerCase() !== SCHEME) return undefined;
  let start = SCHEME.length;
  while (header.charCodeAt(start) === 0x20) start++;
  return header.slice(start);
}

/** Whether a text can be a token at all. */
export function isToken(text: string): boolean {
  return text.length <= MAX_TOKEN && TOKEN.test(text);
}

/**
 * What a token is looked up by. A look-up by the token itself would take longer the more of it is right; nobody can choose
 * what the digest begins with.
 */
export function tokenDigest(token: string): string {
  return hash('sha256', token, 'hex');
}
