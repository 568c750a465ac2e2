import { isIP, isIPv4 } from 'node:net';

export interface AttemptLimitOptions {
  /** Maximum failures within a window. */
  readonly max: number;
  /** Length of a window, from the first failure on, in milliseconds. */
  readonly windowMs: number;
  /** Maximum addresses; a new one replaces the one that failed first. */
  readonly maxAddresses: number;
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number;
}

interface Window {
  readonly endsAt: number;
  failures: number;
}

/** Counts the failed attempts of each address, in a window of its own. */
export class AttemptLimit {
  readonly #options: AttemptLimitOptions;
  /** In the order of their ends, because every window is equally long. */
  readonly #windows = new Map<string, Window>();

  constructor(options: AttemptLimitOptions) {
    this.#options = options;
  }

  /** The time until the address may try again, in milliseconds; 0 when it may now. */
  waitOf(address: string): number {
    const window = this.#current(address);
    if (window === undefined || window.failures < this.#options.max) return 0;
    return window.endsAt - this.#options.now();
  }

  /** Counts a failure; true when it is the one that reaches the limit. */
  fail(address: string): boolean {
    let window = this.#current(address);
    if (window === undefined) {
      this.#makeRoom();
      window = { endsAt: this.#options.now() + this.#options.windowMs, failures: 0 };
      this.#windows.set(address, window);
    }
    window.failures++;
    return window.failures === this.#options.max;
  }

  /** Uncounts a failure. */
  forgive(address: string): void {
    const window = this.#windows.get(address);
    if (window !== undefined && window.failures > 0) window.failures--;
  }

  get size(): number {
    return this.#windows.size;
  }

  #current(address: string): Window | undefined {
    const window = this.#windows.get(address);
    if (window === undefined || window.endsAt > this.#options.now()) return window;
    this.#windows.delete(address);
    return undefined;
  }

  #makeRoom(): void {
    for (const [address, { endsAt }] of this.#windows) {
      if (endsAt > this.#options.now() && this.#windows.size < this.#options.maxAddresses) return;
      this.#windows.delete(address);
    }
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
