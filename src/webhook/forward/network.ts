import type { ClientRequest } from 'node:http';
import { AttemptError, NotSentError } from '../../inbox/dispatch/target.ts';
import { HostResolver, type ResolverOptions } from './host-resolver.ts';

/** How connections are opened. Times are in milliseconds. */
export interface NetworkOptions extends ResolverOptions {
  /** Maximum time for opening a connection, the look-up and TLS included; default 5,000. */
  readonly connectTime?: number;
  /** How long a host that took no connection in that time is left alone; default 5,000. */
  readonly silence?: number;
}

/**
 * What all forward addresses share: the look-ups of hosts, and which hosts take no connections. Attempts that open a
 * connection to one host at the same time share one wait, and while the host is left alone others fail at once.
 */
export class Network implements Disposable {
  readonly resolver: HostResolver;
  readonly #connectTime: number;
  readonly #silence: number;
  /** The requests that wait for a connection, by host and port. */
  readonly #opening = new Map<string, Set<ClientRequest>>();
  /** Until when hosts are left alone, on the monotonic clock. */
  readonly #silentUntil = new Map<string, number>();
  #closed = false;

  constructor({ connectTime = 5_000, silence = 5_000, ...options }: NetworkOptions = {}) {
    this.resolver = new HostResolver(options);
    this.#connectTime = connectTime;
    this.#silence = silence;
  }

  /** Throws AttemptError while a host is left alone, and NotSentError after the end. */
  admit(host: string): void {
    if (this.#closed) throw new NotSentError(host);
    const left = (this.#silentUntil.get(host) ?? 0) - performance.now();
    if (left > 0) throw new AttemptError(`${host} took no connection a moment ago`, Math.ceil(left));
  }

  /** Bounds the time until the connection of a request is open; `event` is what its socket tells then. */
  watch(host: string, request: ClientRequest, event: 'connect' | 'secureConnect'): void {
    request.once('socket', (socket) => {
      if (!socket.connecting) return;
      if (this.#closed) return void request.destroy(new NotSentError(host));
      const opening = this.#opening.get(host) ?? new Set();
      this.#opening.set(host, opening.add(request));
      const timer = setTimeout(() => this.#leaveAlone(host), this.#connectTime);
      const opened = () => {
        clearTimeout(timer);
        opening.delete(request);
      };
      socket.once(event, () => {
        opened();
        this.#silentUntil.delete(host);
      });
      socket.once('close', opened);
    });
  }

  /** Ends all look-ups and all requests that have no connection yet: nothing of them was sent. */
  [Symbol.dispose](): void {
    this.#closed = true;
    this.resolver[Symbol.dispose]();
    for (const [host, requests] of this.#opening) {
      for (const request of requests) request.destroy(new NotSentError(host));
    }
  }

  #leaveAlone(host: string): void {
    this.#silentUntil.set(host, performance.now() + this.#silence);
    const error = new AttemptError(`${host} took no connection within ${this.#connectTime} ms`);
    for (const request of this.#opening.get(host) ?? []) request.destroy(error);
  }
}
