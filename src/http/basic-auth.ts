import { timingSafeEqual } from 'node:crypto';
import { digestOf, EmptySecretError } from './secret-equal.ts';

/** Who may come in. Two entries with one name are two passwords of one user. */
export interface BasicUser {
  readonly user: string;
  readonly password: string;
  readonly roles: readonly string[];
}

/** Who has come in. */
export interface Principal {
  readonly name: string;
  readonly roles: readonly string[];
}

/** Maps the value of an Authorization header to the user it proves, or to undefined. */
export type Authenticator = (header: string | undefined) => Principal | undefined;

/** A user name that no Basic header can carry. */
export class UserNameError extends Error {
  override readonly name = 'UserNameError';
  readonly code = 'USER_NAME';
}

const CREDENTIALS = /^basic +([a-z0-9+/]+={0,2})$/i;
// biome-ignore lint/suspicious/noControlCharactersInRegex: RFC 7617 2 forbids exactly these.
const CONTROL = /[\u0000-\u001f\u007f]/;
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reads an Authorization header of the Basic scheme (RFC 7617); undefined for whatever is not a proper one. */
export function parseBasicAuth(
  header: string | undefined,
): { readonly user: string; readonly password: string } | undefined {
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

/**
 * Authenticates against a fixed list of users. Every user is compared for every request, name and
 * password at once, so that the time tells neither who exists nor how close a guess was.
 * Throws UserNameError or EmptySecretError for a user that could not log in, or that everybody could be.
 */
export function basicAuthenticator(users: readonly BasicUser[]): Authenticator {
  const known = users.map(({ user, password, roles }) => {
    if (user === '' || user.includes(':') || CONTROL.test(user)) {
      throw new UserNameError(
        `The user name ${JSON.stringify(user)} is empty or has a colon; choose another.`,
      );
    }
    if (password === '') throw new EmptySecretError();
    return { digest: digestPair(user, password), principal: { name: user, roles } };
  });
  return (header) => {
    const presented = parseBasicAuth(header);
    if (presented === undefined) return undefined;
    const digest = digestPair(presented.user, presented.password);
    let found: Principal | undefined;
    for (const candidate of known) if (timingSafeEqual(candidate.digest, digest)) found = candidate.principal;
    return found;
  };
}

function digestPair(user: string, password: string): Buffer {
  return Buffer.concat([digestOf(user), digestOf(password)]);
}
