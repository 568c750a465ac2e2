import type { WebSocket } from 'ws';
import type { Outlet } from './outlet.ts';

/**
 * Reads the messages of one client, one per turn of the event loop. While the client does not read what waits for it, its
 * messages wait too, so that what it asks for cannot pile up.
 */
export class Inlet {
  readonly #client: WebSocket;
  readonly #outlet: Outlet;
  readonly #read: (message: Buffer) => void;
  /** What had come already when the client was paused. */
  readonly #waiting: Buffer[] = [];
  #isScheduled = false;

  constructor(client: WebSocket, outlet: Outlet, read: (message: Buffer) => void) {
    this.#client = client;
    this.#outlet = outlet;
    this.#read = read;
    outlet.onRoom(() => this.#schedule());
  }

  push(message: Buffer): void {
    if (this.#waiting.length === 0 && !this.#outlet.isFull) {
      this.#read(message);
      return;
    }
    this.#waiting.push(message);
    this.#client.pause();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      if (this.#client.readyState !== this.#client.OPEN || this.#outlet.isFull) return;
      const message = this.#waiting.shift();
      if (message !== undefined) this.#read(message);
      if (this.#waiting.length === 0) this.#client.resume();
      else this.#schedule();
    });
  }
}
