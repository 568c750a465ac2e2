import { headerName } from './header-name.ts';

/** Found anywhere in a name, without its separators: to refuse a harmless header is better than to store a secret. */
const SECRET_PARTS =
  /authoriz|authentic|cookie|signature|token|secret|passw|passphrase|credential|session|hmac|jwt|bearer|assertion|(?:api|access|private|auth|shared|signing|subscription|master|account)key/;

/** Found as a word of a name. */
const SECRET_WORDS: ReadonlySet<string> = new Set(['auth', 'sig', 'sign', 'mac', 'otp', 'pin', 'cred']);

/** Trello's signature is called so. */
const SECRET_NAMES: ReadonlySet<string> = new Set(['x-trello-webhook']);

/** Whether a header is named like one with a credential or a signature; `name` is in lower case. */
export function isSecretHeader(name: string): boolean {
  const words = name.split(/[^a-z0-9]+/);
  return (
    SECRET_NAMES.has(name) ||
    SECRET_PARTS.test(words.join('')) ||
    words.some((word) => SECRET_WORDS.has(word))
  );
}

/** Whether a text is the name of a header that may be stored. */
export function isKeepableHeader(text: string): boolean {
  const name = headerName(text);
  return name !== undefined && !isSecretHeader(name);
}
