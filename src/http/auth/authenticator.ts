import { createHmac, randomBytes } from 'node:crypto';
import { HttpProblem } from '../problem.ts';
import { AttemptLimit, attemptSource } from './attempt-limit.ts';
import { type BasicUser, type Credentials, type Principal, parseBasicAuth } from './basic-auth.ts';
import { boundedGate } from './bounded-gate.ts';
import { userTable } from './user-table.ts';

/** The authenticated user, why credentials are not even checked (429 or 503), or undefined for wrong ones. */
export type Verdict = Principal | HttpProblem | undefined;

/** Maps the value of an Authorization header, sent from an address, to a verdict. */
export type Authenticator = (header: string | undefined, address: string) => Verdict | Promise<Verdict>;

export interface AuthenticatorOptions {
  /** Failed attempts of one address within a minute after which it has to wait; default 10, 0 for no limit. */
  readonly maxFailures?: number | undefined;
  /** Called when an address reaches that limit. */
  readonly onLimit?: (address: string) => void;
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number;
}

const WINDOW = 60_000;
const MAX_ADDRESSES = 10_000;
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
  { maxFailures = 10, onLimit = () => {}, now = () => performance.now() }: AuthenticatorOptions = {},
): Authenticator {
  const { byPassword, byHash } = userTable(users);
  const max = maxFailures === 0 ? Number.POSITIVE_INFINITY : maxFailures;
  const limit = new AttemptLimit({ max, windowMs: WINDOW, maxAddresses: MAX_ADDRESSES, now });
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

  function fail(source: string): void {
    if (limit.fail(source)) onLimit(source);
  }

  async function checkHash(
    check: NonNullable<typeof byHash>,
    credentials: Credentials,
    id: string,
    source: string,
  ) {
    // Counted before the result is known, or a thousand concurrent guesses would all be checked.
    const reached = limit.fail(source);
    try {
      const principal = await gate(() => check(credentials));
      if (principal !== undefined) limit.forgive(source);
      else if (reached) onLimit(source);
      return principal;
    } catch (error) {
      limit.forgive(source);
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
      const wait = limit.waitOf(source);
      if (wait > 0) return tooMany(wait);
      const principal = known?.principal ?? byPassword(credentials);
      if (principal !== undefined) return remember(id, source, principal);
      if (byHash === undefined) {
        fail(source);
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

function tooMany(waitMs: number): HttpProblem {
  const headers = { 'retry-after': String(Math.ceil(waitMs / 1_000)) };
  return new HttpProblem(429, 'TOO_MANY_ATTEMPTS', 'Too many failed log-ins from here; wait a while', {
    headers,
  });
}
