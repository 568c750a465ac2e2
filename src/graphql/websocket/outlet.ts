import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import {
  MAX_BEHIND,
  type ReplyBudget,
  type SentReply,
  takenBy,
  type Unread,
} from '../../http/reply/reply-budget.ts';

/** Sends to one client, and bounds what waits for it. */
export class Outlet {
  readonly #client: WebSocket;
  readonly #budget: ReplyBudget;
  readonly #connection: Omit<SentReply, 'onClose'>;
  readonly #events: Unread;
  #onRoom: () => void = () => {};

  constructor(client: WebSocket, socket: Socket, budget: ReplyBudget) {
    this.#client = client;
    this.#budget = budget;
    this.#connection = { taken: () => takenBy(socket), cut: () => client.terminate() };
    this.#events = budget.open({
      ...this.#connection,
      onClose: (listener) => client.once('close', listener),
    });
  }

  /** Whether so much waits for the client that nothing more is done for it. */
  get isFull(): boolean {
    return this.#client.bufferedAmount > MAX_BEHIND;
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
    // While a client does not read it, Node would hold a text twice.
    const bytes = typeof text === 'string' ? Buffer.from(text) : text;
    const sent = Promise.withResolvers<void>();
    this.#budget.take(bytes.length, {
      ...this.#connection,
      onClose: (listener) => sent.promise.then(listener),
    });
    return this.send(bytes).then(sent.resolve);
  }

  /** Sends an event of a subscription. A client that has left too much of those before, or for whose next one there is no room, is cut. */
  sendEvent(text: string | Buffer): void {
    const bytes = typeof text === 'string' ? Buffer.from(text) : text;
    if (this.#events.isBehind() || !this.#events.mayAdd(bytes.length)) {
      this.#client.terminate();
      return;
    }
    this.#events.add(bytes.length);
    this.send(bytes).then(() => this.#events.remove(bytes.length));
  }
}
