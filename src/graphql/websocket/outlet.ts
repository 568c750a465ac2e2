import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { LARGE_REPLY, type ReplyBudget, takenBy } from '../../http/body/reply-budget.ts';
import { type EventBacklog, MAX_BUFFERED } from '../../http/event-stream/unread-events.ts';

/** Sends to one client, and bounds what waits for it. */
export class Outlet {
  readonly #client: WebSocket;
  readonly #socket: Socket;
  readonly #budget: ReplyBudget;
  readonly #events: EventBacklog;
  #onRoom: () => void = () => {};

  constructor(client: WebSocket, socket: Socket, budget: ReplyBudget, events: EventBacklog) {
    this.#client = client;
    this.#socket = socket;
    this.#budget = budget;
    this.#events = events;
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

  /** Sends an event of a subscription. A client that has left too much of those before waiting is cut. */
  sendEvent(text: string | Buffer): void {
    if (this.#events.isTooLong) {
      this.#client.terminate();
      return;
    }
    this.#events.add(text.length);
    this.send(text).then(() => this.#events.remove(text.length));
  }
}
