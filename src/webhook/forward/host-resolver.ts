import type { LookupAddress } from 'node:dns';
import { isIP } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { AttemptError, NotSentError } from '../../inbox/dispatch/target.ts';
import { inHostsFile } from './hosts-file.ts';
import { fullNames } from './search-list.ts';

type Addresses = readonly LookupAddress[];

/** How names are looked up. Times are in milliseconds. */
export interface ResolverOptions {
  /** DNS servers; default those of the system. */
  readonly servers?: readonly string[];
  /** Maximum time for all of a look-up; default 3,000. */
  readonly limit?: number;
  readonly hostsFile?: string;
  readonly resolvConf?: string;
}

/** How long an answer is kept, whatever its TTL says, and a failure; in milliseconds. */
const KEPT = { min: 1_000, max: 60_000, failure: 5_000 };
/** How long the addresses of one family wait for those of the other, in milliseconds. */
const GRACE = 250;
/** Timeout of a first question to a server in milliseconds, and the number of tries. */
const QUESTION = { timeout: 1_000, tries: 3 };
/** The DNS server says that there is no such name, or there is no server; then the system may know it otherwise. */
const UNKNOWN: ReadonlySet<unknown> = new Set(['ENOTFOUND', 'ENODATA', 'ECONNREFUSED']);

/** Loaded by the first look-up: most services forward nothing. */
const loadDns = () => process.getBuiltinModule('node:dns');

interface Answer {
  readonly addresses: Addresses;
  /** In milliseconds. */
  readonly ttl: number;
}

interface Lookup {
  readonly answer: Promise<Addresses>;
  /** On the monotonic clock; infinite while it is under way. */
  keptUntil: number;
}

/**
 * Finds the addresses of hosts without the system's resolver, which has two threads for all names of the process: names
 * whose DNS servers do not answer would hold up all others. Each host has one look-up at a time, with a time limit, and
 * its answer is kept. The hosts file and the search list of the system count as usual.
 */
export class HostResolver implements Disposable {
  readonly #options: ResolverOptions;
  readonly #limit: number;
  readonly #lookups = new Map<string, Lookup>();
  readonly #closing = new AbortController();
  /** The last look-up by the system's resolver, which gets one at a time. */
  #bySystem: Promise<unknown> = Promise.resolve();

  constructor(options: ResolverOptions = {}) {
    this.#options = options;
    this.#limit = options.limit ?? 3_000;
  }

  /** The addresses of a host, at least one. Rejects with AttemptError, after `dispose` with NotSentError. */
  resolve(host: string): Promise<Addresses> {
    const known = this.#lookups.get(host);
    if (known !== undefined && performance.now() < known.keptUntil) return known.answer;
    const answer = this.#limited(host).then(
      ({ addresses, ttl }) => {
        lookup.keptUntil = performance.now() + Math.min(KEPT.max, Math.max(KEPT.min, ttl));
        return addresses;
      },
      (error: unknown) => {
        lookup.keptUntil = performance.now() + KEPT.failure;
        throw error;
      },
    );
    const lookup: Lookup = { answer, keptUntil: Number.POSITIVE_INFINITY };
    this.#lookups.set(host, lookup);
    return answer;
  }

  /** Ends all look-ups. */
  [Symbol.dispose](): void {
    this.#closing.abort();
  }

  /** Looks a host up; its end, in time or not, cancels its questions. */
  async #limited(host: string): Promise<Answer> {
    const end = new AbortController();
    const { promise: stopped, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new AttemptError(`the DNS look-up of ${host} had no answer within ${this.#limit} ms`)),
      this.#limit,
    );
    const close = () => reject(new NotSentError(host));
    const { signal } = this.#closing;
    signal.addEventListener('abort', close);
    if (signal.aborted) close();
    try {
      return await Promise.race([this.#lookUp(host, end.signal), stopped]);
    } catch (error) {
      if (error instanceof AttemptError) throw error;
      throw new AttemptError(`the DNS look-up of ${host} failed: ${codeOf(error)}`);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', close);
      end.abort();
    }
  }

  async #lookUp(host: string, signal: AbortSignal): Promise<Answer> {
    const family = isIP(host);
    if (family !== 0) return { addresses: [{ address: host, family }], ttl: KEPT.max };
    const local = await inHostsFile(host, this.#options.hostsFile);
    if (local.length > 0) return { addresses: local, ttl: KEPT.failure };
    let failure: unknown;
    for (const name of await fullNames(host, this.#options.resolvConf)) {
      if (signal.aborted) break;
      try {
        return await this.#ask(name, signal);
      } catch (error) {
        failure = error;
        if (!UNKNOWN.has(codeOf(error))) break;
      }
    }
    if (signal.aborted || !UNKNOWN.has(codeOf(failure))) throw failure;
    const bySystem = this.#bySystem.then(() => {
      if (signal.aborted) throw failure;
      return loadDns().promises.lookup(host, { all: true });
    });
    this.#bySystem = bySystem.catch(() => {});
    return { addresses: await bySystem, ttl: KEPT.failure };
  }

  /** Asks the DNS servers for the addresses of a full name. Rejects with the error of the first family. */
  async #ask(name: string, signal: AbortSignal): Promise<Answer> {
    const resolver = new (loadDns().promises.Resolver)(QUESTION);
    if (this.#options.servers !== undefined) resolver.setServers(this.#options.servers);
    signal.addEventListener('abort', () => resolver.cancel());
    const four = records(resolver.resolve4(name, { ttl: true }), 4);
    const six = records(resolver.resolve6(name, { ttl: true }), 6);
    const [a, b] = await Promise.allSettled([soonAfter(six, four), soonAfter(four, six)]);
    const answers = [a, b].flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    const addresses = answers.flatMap((answer) => answer.addresses);
    if (addresses.length > 0) return { addresses, ttl: Math.min(...answers.map(({ ttl }) => ttl)) };
    // A name that exists for none of both is told apart from a server that failed for one.
    const failures = [a, b].flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
    throw failures.find((error) => !UNKNOWN.has(codeOf(error))) ?? failures[0];
  }
}

async function records(
  found: Promise<readonly { readonly address: string; readonly ttl: number }[]>,
  family: 4 | 6,
): Promise<Answer> {
  const all = await found;
  return {
    addresses: all.map(({ address }) => ({ address, family })),
    ttl: Math.min(...all.map(({ ttl }) => ttl)) * 1_000,
  };
}

/** The answer `own`, or none `GRACE` after `other` has had addresses. */
function soonAfter(other: Promise<Answer>, own: Promise<Answer>): Promise<Answer> {
  const late = other.then(
    async ({ ttl }) => {
      await delay(GRACE, undefined, { ref: false });
      return { addresses: [], ttl };
    },
    () => own,
  );
  return Promise.race([own, late]);
}

function codeOf(error: unknown): string {
  const { code } = Object(error) as { readonly code?: unknown };
  return typeof code === 'string' ? code : String(error);
}
