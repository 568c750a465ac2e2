import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import type { Arrival, BodyBudget, BodySender } from '../../http/body/body-budget.ts';
import type { Exchange } from '../../http/endpoint.ts';
import type { HttpProblem } from '../../http/problem.ts';
import { Frames } from './frames.ts';
import type { Outlet } from './outlet.ts';

/** The service may be able to take it later (RFC 6455 7.4.1, "Try Again Later"). */
const TRY_AGAIN = 1013;
/** The memory that each piece takes beside its bytes, however few these are. */
const PIECE = 256;
/** What holds less is not counted: most messages come at once and are read at once. */
const UNCOUNTED = 4 * 1024;

/** Whose messages are read, and what bounds them. */
export interface InletOptions {
  readonly client: WebSocket;
  /** The connection below it. */
  readonly socket: Socket;
  readonly outlet: Outlet;
  /** Bounds what clients have sent and nobody has read yet. */
  readonly budget: BodyBudget;
  /** The request that became the WebSocket. */
  readonly exchange: Exchange;
}

/** Takes a message. */
type ReadMessage = (message: Buffer, isBinary: boolean) => void;

/**
 * Reads the messages of one client, one per turn of the event loop. While the client does not read what waits for it, its
 * messages wait too, so that what it asks for cannot pile up. What has come and is not read yet counts into a budget:
 * messages that have not ended with the memory that they keep from being freed, which is that of all bytes since their
 * beginning, and messages that wait.
 */
export class Inlet implements BodySender {
  readonly #options: InletOptions;
  readonly #frames = new Frames();
  #readMessage: ReadMessage = () => {};
  /** Memory of the bytes since the beginning of the message that has not ended. */
  #open = 0;
  /** What has come at once and is not read yet: messages and control frames, and the memory that they share. */
  readonly #unread: { messages: number; readonly memory: number }[] = [];
  /** Messages that had come already when the client was paused. */
  readonly #waiting: (readonly [message: Buffer, isBinary: boolean])[] = [];
  #waitingMemory = 0;
  #unreadMemory = 0;
  #received = 0;
  #arrival: Arrival | undefined;
  #isScheduled = false;

  constructor(options: InletOptions) {
    this.#options = options;
  }

  /** Begins to read. */
  start(read: ReadMessage): void {
    this.#readMessage = read;
    const { client, socket, outlet } = this.#options;
    outlet.onRoom(() => this.#schedule());
    // Before ws, which would have read whole messages.
    socket.prependListener('data', (bytes: Buffer) => this.#follow(bytes));
    const onRead = () => this.#noteRead();
    client
      .on('message', (message, isBinary) => {
        this.#push(message as Buffer, isBinary);
        onRead();
      })
      .on('ping', onRead)
      .on('pong', onRead)
      .once('close', () => this.#forget());
  }

  get caller(): Exchange['caller'] {
    return this.#options.exchange.caller;
  }

  get client(): string {
    return this.#options.exchange.client;
  }

  refuse({ code }: HttpProblem): void {
    const { client } = this.#options;
    this.#forget();
    client.close(TRY_AGAIN, code);
    // The reason is on its way; what the client has sent is free at once.
    client.terminate();
  }

  #push(message: Buffer, isBinary: boolean): void {
    const { client, outlet } = this.#options;
    if (this.#waiting.length === 0 && !outlet.isFull) {
      this.#readMessage(message, isBinary);
      return;
    }
    this.#waiting.push([message, isBinary]);
    this.#waitingMemory += message.length + PIECE;
    client.pause();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      const { client, outlet } = this.#options;
      this.#isScheduled = false;
      if (client.readyState !== client.OPEN || outlet.isFull) return;
      const first = this.#waiting.shift();
      if (first !== undefined) {
        this.#waitingMemory -= first[0].length + PIECE;
        this.#readMessage(...first);
        this.#count();
      }
      if (this.#waiting.length === 0) client.resume();
      else this.#schedule();
    });
  }

  #follow(bytes: Buffer): void {
    this.#received += bytes.length;
    const before = this.#frames.fragments;
    const messages = this.#frames.advance(bytes);
    const memory = bytes.length + PIECE;
    const { fragments } = this.#frames;
    if (!this.#frames.isOpen) this.#open = 0;
    else if (this.#frames.isNew) this.#open = memory + fragments * PIECE;
    else this.#open += memory + (fragments - before) * PIECE;
    if (messages > 0) {
      this.#unread.push({ messages, memory });
      this.#unreadMemory += memory;
    }
    this.#count();
  }

  /** A message or a control frame was read, in the order of their arrival. */
  #noteRead(): void {
    const [first] = this.#unread;
    if (first !== undefined && --first.messages <= 0) {
      this.#unread.shift();
      this.#unreadMemory -= first.memory;
    }
    this.#count();
  }

  #count(): void {
    const held = this.#open + this.#unreadMemory + this.#waitingMemory;
    if (held <= UNCOUNTED && this.#arrival === undefined) return;
    const { budget } = this.#options;
    if (held <= UNCOUNTED) {
      this.#forget();
      return;
    }
    this.#arrival ??= budget.open(this);
    try {
      budget.grow(this.#arrival, held, this.#received);
    } catch (problem) {
      this.refuse(problem as HttpProblem);
    }
  }

  #forget(): void {
    if (this.#arrival !== undefined) this.#options.budget.close(this.#arrival);
    this.#arrival = undefined;
    this.#received = 0;
  }
}
