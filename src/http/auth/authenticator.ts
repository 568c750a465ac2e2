import { createHmac, randomBytes } from 'node:crypto';
import { HttpProblem } from '../problem.ts';
import { attemptSource } from './attempt-limit.ts';
import { type BasicUser, type Credentials, type Principal, parseBasicAuth } from './basic-auth.ts';
import { boundedGate } from './bounded-gate.ts';
import { FailureLimit, type FailureLimitOptions } from './failure-limit.ts';
import { userTable } from './user-table.ts';

/** The authenticated user, why credentials are not even checked (429 or 503), or undefined for wrong ones. */
export type Verdict = Principal | HttpProblem | undefined;

/** Maps the value of an Authorization header, sent from an address, to a verdict. */
export type Authenticator = (header: string | undefined, address: string) => Verdict | Promise<Verdict>;

export interface AuthenticatorOptions extends FailureLimitOptions {
  /** The limit on failures, where other ways to authenticate share it; default one of its own. */
  readonly failures?: FailureLimit;
}

/** Concurrent checks of hashes: each takes memory and a thread of the pool, which files and DNS use too. */
const CHECKS_AT_ONCE = 2;
const WAITING_CHECKS = 32;
/** Maximum remembered addresses of one user. */
const MAX_SOURCES = 100;

/** The user of right credentials, and their addresses. */
interface Proven {
  readonly principal: Principal;
  readonly sources: Set<string>;
}

/**
 * Authenticates against a fixed list of users. The cost of a hashed password is paid once: right credentials are
 * recognised by a keyed digest afterwards. An address with too many failures gets 429 for wrong and right credentials
 * alike, so that guessing reveals nothing; except those that were right from that address before.
 * Throws UserNameError, EmptySecretError or PasswordHashError for invalid users.
 */
export function authenticator(
  users: readonly BasicUser[],
  options: AuthenticatorOptions = {},
): Authenticator {
  const { byPassword, byHash } = userTable(users);
  const { failures = new FailureLimit(options) } = options;
  const gate = boundedGate(CHECKS_AT_ONCE, WAITING_CHECKS, BUSY);
  const key = randomBytes(32);
  // At most one entry per password of a user: nothing else is ever right.
  const proven = new Map<string, Proven>();
  const checking = new Map<string, Promise<Principal | undefined>>();

  function remember(id: string, source: string, principal: Principal): Principal {
    const entry = proven.get(id) ?? { principal, sources: new Set() };
    if (entry.sources.size >= MAX_SOURCES) entry.sources.clear();
    entry.sources.add(source);
    proven.set(id, entry);
    return entry.principal;
  }

  async function checkHash(
    check: NonNullable<typeof byHash>,
    credentials: Credentials,
    id: string,
    source: string,
  ) {
    const settle = failures.expectFailure(source);
    try {
      const principal = await gate(() => check(credentials));
      settle(principal === undefined);
      return principal;
    } catch (error) {
      settle(false);
      throw error;
    } finally {
      checking.delete(id);
    }
  }

  return (header, address) => {
    const credentials = parseBasicAuth(header);
    if (credentials === undefined) return undefined;
    const source = attemptSource(address);
    const id = createHmac('sha256', key)
      .update(`${credentials.user}:${credentials.password}`)
      .digest('base64');
    const known = proven.get(id);
    if (known?.sources.has(source)) return known.principal;

    // Concurrent requests with the same credentials share the check; it is one guess.
    let check = checking.get(id);
    if (check === undefined) {
      const refusal = failures.refusal(source);
      if (refusal !== undefined) return refusal;
      const principal = known?.principal ?? byPassword(credentials);
      if (principal !== undefined) return remember(id, source, principal);
      if (byHash === undefined) {
        failures.fail(source);
        return undefined;
      }
      check = checkHash(byHash, credentials, id, source);
      checking.set(id, check);
    }
    return check.then(
      (principal) => (principal === undefined ? undefined : remember(id, source, principal)),
      (error: unknown) => {
        if (error === BUSY) return BUSY;
        throw error;
      },
    );
  };
}

const BUSY = new HttpProblem(503, 'TOO_MANY_LOGINS', 'Too many log-ins at once', {
  headers: { 'retry-after': '1' },
});
