import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { LARGE_REPLY, type ReplyBudget, takenBy } from '../../http/body/reply-budget.ts';
import { MAX_BUFFERED } from '../event-stream.ts';

/** Sends to one client, and bounds what waits for it. */
export class Outlet {
  readonly #client: WebSocket;
  readonly #socket: Socket;
  readonly #budget: ReplyBudget;
  /** Bytes of events that wait. */
  #eventBytes = 0;
  #onRoom: () => void = () => {};

  constructor(client: WebSocket, socket: Socket, budget: ReplyBudget) {
    this.#client = client;
    this.#socket = socket;
    this.#budget = budget;
  }

  /** Whether so much waits for the client that nothing more is done for it. */
  get isFull(): boolean {
    return this.#client.bufferedAmount > MAX_BUFFERED;
  }

  /** Calls the listener whenever it is no longer full. */
  onRoom(listener: () => void): void {
    this.#onRoom = listener;
  }

  /** Sends a message that follows one of the client's own. */
  send(text: string | Buffer): Promise<void> {
    const client = this.#client;
    if (client.readyState !== client.OPEN) return Promise.resolve();
    const sent = Promise.withResolvers<void>();
    client.send(text, { binary: false }, () => {
      sent.resolve();
      if (!this.isFull) this.#onRoom();
    });
    return sent.promise;
  }

  /** Sends a result of the one that an operation has. Throws HttpProblem when too much waits for all clients. */
  sendResult(text: string | Buffer): Promise<void> {
    if (text.length < LARGE_REPLY) return this.send(text);
    // While a client does not read it, Node would hold a text twice.
    const bytes = typeof text === 'string' ? Buffer.from(text) : text;
    const sent = Promise.withResolvers<void>();
    this.#budget.take(bytes.length, {
      onClose: (listener) => sent.promise.then(listener),
      taken: () => takenBy(this.#socket),
      cut: () => this.#client.terminate(),
    });
    return this.send(bytes).then(sent.resolve);
  }

  /** Sends an event of a subscription. A client that has left more than `MAX_BUFFERED` bytes of them waiting is cut. */
  sendEvent(text: string | Buffer): void {
    // What waits are the events before: one may be as large as it likes.
    if (this.#eventBytes > MAX_BUFFERED) {
      this.#client.terminate();
      return;
    }
    this.#eventBytes += text.length;
    this.send(text).then(() => {
      this.#eventBytes -= text.length;
    });
  }
}
