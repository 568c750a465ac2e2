/** A user that may log in. Two entries with one name are two passwords of one user. */
export interface BasicUser {
  readonly user: string;
  /** The password itself, or its hash as `$scrypt$...` or `$argon2id$...`. */
  readonly password: string;
  readonly roles: readonly string[];
}

/** An authenticated user. */
export interface Principal {
  readonly name: string;
  readonly roles: readonly string[];
}

/** The credentials of a Basic header, not verified. */
export interface Credentials {
  readonly user: string;
  readonly password: string;
}

const CREDENTIALS = /^basic +([a-z0-9+/]+={0,2})$/i;
// biome-ignore lint/suspicious/noControlCharactersInRegex: RFC 7617 2 forbids exactly these.
export const CONTROL = /[\u0000-\u001f\u007f]/;
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Parses an Authorization header of the Basic scheme (RFC 7617); undefined for an invalid one. */
export function parseBasicAuth(header: string | undefined): Credentials | undefined {
  const encoded = header === undefined ? undefined : CREDENTIALS.exec(header)?.[1];
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  // Node's decoder forgives missing padding and stray bits; one text must have one spelling.
  if (bytes.toString('base64') !== encoded) return undefined;
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return undefined;
  }
  const colon = text.indexOf(':');
  if (colon === -1 || CONTROL.test(text)) return undefined;
  return { user: text.slice(0, colon), password: text.slice(colon + 1) };
}
