import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { HttpProblem } from '@portico/transport';
import { attemptSource } from '../core/addresses.ts';
import { ExpectedError } from '../core/errors.ts';
import {
  costOf,
  decoyOf,
  digestOf,
  EmptySecretError,
  isPasswordHash,
  parsePasswordHash,
  verifyPassword,
} from '../core/passwords.ts';

type PasswordHash = ReturnType<typeof parsePasswordHash>;

/** The user, a refusal to check the credentials (429 or 503), or undefined for wrong ones. */
type Verdict = Principal | HttpProblem | undefined;

/** Judges the value of an Authorization header that a client at an address sent. */
type Authenticator = (header: string | undefined, address: string) => Verdict | Promise<Verdict>;

/** The limit of an authenticator, or one that it shares with other authentication methods. */
type AuthenticatorOptions = FailureLimitOptions | { readonly failures: FailureLimit };

/** Maximum concurrent checks of hashes, since each takes memory and a thread of libuv's pool. */
const CHECKS_AT_ONCE = 2;
const WAITING_CHECKS = 32;
/** Maximum number of addresses remembered for each user. */
const MAX_SOURCES = 100;

/** A user whose credentials were correct, and the addresses that sent them. */
interface Proven {
  readonly principal: Principal;
  readonly sources: Set<string>;
}

/**
 * Authenticates against a fixed list of users. A correct password is hashed once and recognised by a keyed
 * digest afterwards. An address with too many failures gets 429 for correct credentials too, so that guessing
 * reveals nothing, unless the same credentials were correct from that address before.
 * Throws UserNameError, EmptySecretError or PasswordHashError for invalid users.
 */
export function authenticator(users: readonly BasicUser[], options: AuthenticatorOptions): Authenticator {
  const { byPassword, byHash } = userTable(users);
  const failures = 'failures' in options ? options.failures : new FailureLimit(options);
  const bounded = semaphore(CHECKS_AT_ONCE, WAITING_CHECKS, BUSY);
  const key = randomBytes(32);
  // At most one entry per configured password: only correct credentials are added.
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
      const principal = await bounded(() => check(credentials));
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

    // Concurrent requests with the same credentials share one check, which counts as one guess.
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

/** A user that may log in. Two entries with the same name give that user two passwords. */
export interface BasicUser {
  readonly user: string;
  /** The password, or its hash as `$scrypt$...` or `$argon2id$...`. */
  readonly password: string;
  readonly roles: readonly string[];
}

interface Principal {
  readonly name: string;
  readonly roles: readonly string[];
}

/** The credentials of a Basic header, not verified. */
interface Credentials {
  readonly user: string;
  readonly password: string;
}

const CREDENTIALS = /^basic +([a-z0-9+/]+={0,2})$/i;
// biome-ignore lint/suspicious/noControlCharactersInRegex: RFC 7617 2 forbids exactly these.
const CONTROL = /[\u0000-\u001f\u007f]/;
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Parses an Authorization header of the Basic scheme (RFC 7617); undefined for an invalid one. */
export function parseBasicAuth(header: string | undefined): Credentials | undefined {
  const encoded = header === undefined ? undefined : CREDENTIALS.exec(header)?.[1];
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  // Node's decoder accepts missing padding and stray bits; only the canonical encoding is valid here.
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

/** A Basic header cannot carry the user name. */
class UserNameError extends ExpectedError {
  override readonly name = 'UserNameError';
  readonly code = 'USER_NAME';
}

interface HashedUser {
  readonly name: string;
  readonly hash: PasswordHash;
  readonly principal: Principal | undefined;
}

/** Reads the users. Throws UserNameError, EmptySecretError or PasswordHashError for an invalid one. */
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
     * The user with these credentials. Compares name and password together with those of every user, so that
     * the time reveals neither which users exist nor how close a guess is.
     */
    byPassword(credentials: Credentials): Principal | undefined {
      const digest = digestPair(credentials);
      let found: Principal | undefined;
      for (const known of plain) if (timingSafeEqual(known.digest, digest)) found = known.principal;
      return found;
    },
    /** Finds the user of a hashed password, as slowly for unknown names; undefined without hashes. */
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

interface AttemptLimitOptions {
  /** Maximum failures of an address within a window. */
  readonly max: number;
  /** Length of a window in milliseconds, starting with its first failure. */
  readonly windowMs: number;
  /** Maximum number of addresses; a new address replaces the one that failed first. */
  readonly maxAddresses: number;
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number;
}

/** Counts the failed attempts of each address, in one window for all addresses. */
export class AttemptLimit {
  readonly #options: AttemptLimitOptions;
  readonly #failures = new Map<string, number>();
  #windowEnd = 0;

  constructor(options: AttemptLimitOptions) {
    this.#options = options;
  }

  /** The time until the address may try again, in milliseconds; 0 if it may now. */
  waitOf(address: string): number {
    return this.#failuresOf(address) < this.#options.max ? 0 : this.#windowEnd - this.#options.now();
  }

  /** Counts a failure; returns whether it is the one that reaches the limit. */
  fail(address: string): boolean {
    const { max, windowMs, maxAddresses, now } = this.#options;
    const failures = this.#failuresOf(address) + 1;
    if (this.#failures.size === 0) this.#windowEnd = now() + windowMs;
    const [first] = this.#failures.keys();
    if (failures === 1 && this.#failures.size >= maxAddresses) this.#failures.delete(first ?? '');
    this.#failures.set(address, failures);
    return failures === max;
  }

  /** Takes back a counted failure. */
  forgive(address: string): void {
    const failures = this.#failures.get(address) ?? 0;
    if (failures > 1) this.#failures.set(address, failures - 1);
    else this.#failures.delete(address);
  }

  get size(): number {
    return this.#failures.size;
  }

  #failuresOf(address: string): number {
    if (this.#windowEnd <= this.#options.now()) this.#failures.clear();
    return this.#failures.get(address) ?? 0;
  }
}

interface FailureLimitOptions {
  /** Failed attempts of one address within a minute before it has to wait; 0 for no limit. */
  readonly maxFailures: number;
  /** Called when an address reaches the limit. */
  readonly onLimit?: ((address: string) => void) | undefined;
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number;
}

const WINDOW = 60_000;
const MAX_ADDRESSES = 10_000;

/** Limits the failed attempts of each address, for all authentication methods of a door. */
export class FailureLimit {
  readonly #limit: AttemptLimit;
  readonly #onLimit: (address: string) => void;

  constructor({ maxFailures, onLimit = () => {}, now = () => performance.now() }: FailureLimitOptions) {
    const max = maxFailures === 0 ? Number.POSITIVE_INFINITY : maxFailures;
    this.#limit = new AttemptLimit({ max, windowMs: WINDOW, maxAddresses: MAX_ADDRESSES, now });
    this.#onLimit = onLimit;
  }

  /** The refusal of an attempt from a source that has to wait; undefined if it may try. */
  refusal(source: string): HttpProblem | undefined {
    const wait = this.#limit.waitOf(source);
    if (wait <= 0) return undefined;
    return new HttpProblem(429, 'TOO_MANY_ATTEMPTS', 'Too many failed log-ins from here; wait a while', {
      headers: { 'retry-after': String(Math.ceil(wait / 1_000)) },
    });
  }

  fail(source: string): void {
    if (this.#limit.fail(source)) this.#onLimit(source);
  }

  /**
   * Counts a failure before its check has finished, so that concurrent guesses cannot exceed the limit. Call
   * the returned function with the outcome; it takes the failure back if the check succeeded.
   */
  expectFailure(source: string): (hasFailed: boolean) => void {
    const reached = this.#limit.fail(source);
    return (hasFailed) => {
      if (!hasFailed) this.#limit.forgive(source);
      else if (reached) this.#onLimit(source);
    };
  }
}

/** Runs at most `atOnce` tasks while at most `waiting` others wait; rejects with `full` beyond that. */
export function semaphore(atOnce: number, waiting: number, full: Error) {
  const queue: (() => void)[] = [];
  let running = 0;

  return async <T>(task: () => Promise<T>): Promise<T> => {
    if (running < atOnce) running++;
    else if (queue.length >= waiting) throw full;
    // A finished task passes its place to the next in the queue, so a newcomer cannot take it in between.
    else await new Promise<void>((resolve) => queue.push(resolve));
    try {
      return await task();
    } finally {
      const next = queue.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}
