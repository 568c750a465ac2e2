import { isIP, isIPv4 } from 'node:net';

export interface AttemptLimitOptions {
  /** Maximum failures of an address within a window. */
  readonly max: number;
  /** Length of a window, from the first failure in it on, in milliseconds. */
  readonly windowMs: number;
  /** Maximum addresses; a new one replaces the one that failed first. */
  readonly maxAddresses: number;
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number;
}

/** Counts the failed attempts of each address, in one window for all. */
export class AttemptLimit {
  readonly #options: AttemptLimitOptions;
  readonly #failures = new Map<string, number>();
  #windowEnd = 0;

  constructor(options: AttemptLimitOptions) {
    this.#options = options;
  }

  /** The time until the address may try again, in milliseconds; 0 when it may now. */
  waitOf(address: string): number {
    return this.#failuresOf(address) < this.#options.max ? 0 : this.#windowEnd - this.#options.now();
  }

  /** Counts a failure; true when it is the one that reaches the limit. */
  fail(address: string): boolean {
    const { max, windowMs, maxAddresses, now } = this.#options;
    const failures = this.#failuresOf(address) + 1;
    if (this.#failures.size === 0) this.#windowEnd = now() + windowMs;
    const [first] = this.#failures.keys();
    if (failures === 1 && this.#failures.size >= maxAddresses) this.#failures.delete(first ?? '');
    this.#failures.set(address, failures);
    return failures === max;
  }

  /** Uncounts a failure. */
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

const UNKNOWN = 'unknown';

/**
 * What attempts are counted by: of an IPv6 address the network, since a host has a whole one to choose from. Some proxies
 * forward the port too, which is another one for each connection.
 */
export function attemptSource(address: string | undefined): string {
  // A client that is gone.
  if (address === undefined) return UNKNOWN;
  if (isIPv4(address)) return address;
  const host = /^\[(.+)\](?::\d+)?$/.exec(address)?.[1] ?? address.replace(/^([\d.]+):\d+$/, '$1');
  // A trusted proxy may forward anything.
  if (isIP(host) === 0) return UNKNOWN;
  if (isIPv4(host)) return host;
  const mapped = /^::ffff:(\d+(?:\.\d+){3})$/i.exec(host)?.[1];
  if (mapped !== undefined) return mapped;
  const [head = '', tail] = host.replace(/%.*$/, '').toLowerCase().split('::');
  const before = groupsOf(head);
  const after = groupsOf(tail ?? '');
  const missing = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length);
  const groups = [...before, ...Array<string>(missing).fill('0'), ...after];
  return `${groups.slice(0, 4).join(':')}::/64`;
}

function groupsOf(text: string): readonly string[] {
  return text === '' ? [] : text.split(':').map((group) => group.replace(/^0+(?=.)/, ''));
}
