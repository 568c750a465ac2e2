import { timingSafeEqual } from 'node:crypto';
import { ExpectedError } from '../../core/expected-error.ts';
import { type BasicUser, CONTROL, type Credentials, type Principal } from './basic-auth.ts';
import {
  costOf,
  decoyOf,
  isPasswordHash,
  type PasswordHash,
  parsePasswordHash,
  verifyPassword,
} from './password-hash.ts';
import { digestOf, EmptySecretError } from './secret-equal.ts';

/** A user name that no Basic header can carry. */
export class UserNameError extends ExpectedError {
  override readonly name = 'UserNameError';
  readonly code = 'USER_NAME';
}

interface HashedUser {
  readonly name: string;
  readonly hash: PasswordHash;
  readonly principal: Principal | undefined;
}

/**
 * Reads the users. Throws UserNameError, EmptySecretError or PasswordHashError for a user that could not log in, or as
 * whom everybody could.
 */
export function userTable(users: readonly BasicUser[]) {
  const plain: { readonly digest: Buffer; readonly principal: Principal }[] = [];
  const hashed: HashedUser[] = [];
  for (const { user, password, roles } of users) {
    if (user === '' || user.includes(':') || CONTROL.test(user)) {
      throw new UserNameError(
        `The user name ${JSON.stringify(user)} is empty or has a colon; choose another.`,
      );
    }
    if (password === '') throw new EmptySecretError();
    const principal = { name: user, roles };
    if (isPasswordHash(password)) hashed.push({ name: user, hash: parsePasswordHash(password), principal });
    else plain.push({ digest: digestPair({ user, password }), principal });
  }
  return {
    /**
     * The user of a password. Every user is compared, name and password at once, so that the time reveals neither which
     * users exist nor how close a guess was.
     */
    byPassword(credentials: Credentials): Principal | undefined {
      const digest = digestPair(credentials);
      let found: Principal | undefined;
      for (const known of plain) if (timingSafeEqual(known.digest, digest)) found = known.principal;
      return found;
    },
    /** The user of a hashed password; an unknown name takes as long. Undefined when there are no hashes. */
    byHash: hashed.length === 0 ? undefined : hashCheck(hashed),
  };
}

function hashCheck(
  users: readonly HashedUser[],
): (credentials: Credentials) => Promise<Principal | undefined> {
  const rounds = Math.max(...users.map(({ name }) => users.filter((other) => other.name === name).length));
  const { hash: dearest } = users.reduce((a, b) => (costOf(b.hash) > costOf(a.hash) ? b : a));
  const nobody: HashedUser = { name: '', hash: decoyOf(dearest), principal: undefined };

  return async ({ user, password }) => {
    const candidates = users.filter(({ name }) => name === user);
    let found: Principal | undefined;
    for (let round = 0; round < rounds; round++) {
      const { hash, principal } = candidates[round] ?? nobody;
      if (await verifyPassword(password, hash)) found ??= principal;
    }
    return found;
  };
}

function digestPair({ user, password }: Credentials): Buffer {
  return Buffer.concat([digestOf(user), digestOf(password)]);
}
