import type { Socket } from 'node:net';
import {
  type BodyBudget,
  type HttpProblem,
  LIMITS,
  type ReplyBudget,
  type RequestContext,
  takenBy,
} from '@portico/transport';
import type { WebSocket } from 'ws';

/** Close code for a temporary failure (RFC 6455 7.4.1, "Try Again Later"). */
const TRY_AGAIN = 1013;
/** Memory overhead of each piece, in bytes, however small it is. */
const PIECE = 256;
/**
 * Connections that hold less, in bytes, are not counted: most messages arrive at once and are read at once.
 */
const UNCOUNTED = 4 * 1024;

/** The options of an InboundQueue. */
interface InboundQueueOptions {
  readonly client: WebSocket;
  /** The WebSocket's underlying connection. */
  readonly socket: Socket;
  readonly outbound: OutboundQueue;
  /** Bounds the memory of unread messages. */
  readonly budget: BodyBudget;
  /** The request that was upgraded to the WebSocket. */
  readonly ctx: RequestContext;
}

/** Handles a message. */
type ReadMessage = (message: Buffer, isBinary: boolean) => void;

/**
 * Reads the messages of a client, one per turn of the event loop. While the client does not read its replies,
 * its messages wait too, so that replies cannot pile up. Unread data counts towards a budget: waiting
 * messages, and incomplete messages with the memory that they keep alive, which is that of all bytes since
 * their start.
 */
export class InboundQueue {
  readonly #options: InboundQueueOptions;
  readonly #frames = new Frames();
  #readMessage: ReadMessage = () => {};
  /** Memory of the bytes since the start of the incomplete message. */
  #open = 0;
  /** Chunks with unread messages or control frames: how many end in each chunk, and its memory. */
  readonly #unread: { messages: number; readonly memory: number }[] = [];
  /** Messages that arrived before the client was paused. */
  readonly #waiting: (readonly [message: Buffer, isBinary: boolean])[] = [];
  #waitingMemory = 0;
  #unreadMemory = 0;
  #received = 0;
  #arrival: ReturnType<BodyBudget['open']> | undefined;
  #isScheduled = false;

  constructor(options: InboundQueueOptions) {
    this.#options = options;
  }

  /** Starts reading. */
  start(read: ReadMessage): void {
    this.#readMessage = read;
    const { client, socket, outbound } = this.#options;
    outbound.onDrain(() => this.#schedule());
    // Comes before ws, which would read whole messages first.
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

  get caller(): RequestContext['caller'] {
    return this.#options.ctx.caller;
  }

  get client(): string {
    return this.#options.ctx.client;
  }

  refuse({ code }: HttpProblem): void {
    const { client } = this.#options;
    this.#forget();
    client.close(TRY_AGAIN, code);
    // The close frame has been written; free what the client has sent without waiting for its answer.
    client.terminate();
  }

  #push(message: Buffer, isBinary: boolean): void {
    const { client, outbound } = this.#options;
    if (this.#waiting.length === 0 && !outbound.isFull) {
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
      const { client, outbound } = this.#options;
      this.#isScheduled = false;
      if (client.readyState !== client.OPEN || outbound.isFull) return;
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

  /** Records that the next message or control frame, in order of arrival, was read. */
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

/** Sends messages to a client, and bounds what it has not read. */
export class OutboundQueue {
  readonly #client: WebSocket;
  readonly #budget: ReplyBudget;
  readonly #connection: Omit<Parameters<ReplyBudget['open']>[0], 'onClose'>;
  readonly #events: ReturnType<ReplyBudget['open']>;
  #onDrain: () => void = () => {};

  constructor(client: WebSocket, socket: Socket, budget: ReplyBudget) {
    this.#client = client;
    this.#budget = budget;
    this.#connection = { taken: () => takenBy(socket), cut: () => client.terminate() };
    this.#events = budget.open({
      ...this.#connection,
      onClose: (listener) => client.once('close', listener),
    });
  }

  /** Whether so many bytes wait for the client that its messages are not handled. */
  get isFull(): boolean {
    return this.#client.bufferedAmount > LIMITS.maxUnreadEvents;
  }

  /** Calls the listener whenever the queue is no longer full. */
  onDrain(listener: () => void): void {
    this.#onDrain = listener;
  }

  /** Sends a message in response to one of the client's. */
  send(text: string | Buffer): Promise<void> {
    const client = this.#client;
    if (client.readyState !== client.OPEN) return Promise.resolve();
    const sent = Promise.withResolvers<void>();
    client.send(text, { binary: false }, () => {
      sent.resolve();
      if (!this.isFull) this.#onDrain();
    });
    return sent.promise;
  }

  /**
   * Sends the result of an operation. Throws HttpProblem if all clients together have too much unread data.
   */
  sendResult(text: string | Buffer): Promise<void> {
    // Node would hold a string twice while the client does not read it.
    const bytes = typeof text === 'string' ? Buffer.from(text) : text;
    const sent = Promise.withResolvers<void>();
    this.#budget.take(bytes.length, {
      ...this.#connection,
      onClose: (listener) => sent.promise.then(listener),
    });
    return this.send(bytes).then(sent.resolve);
  }

  /**
   * Sends an event of a subscription. Disconnects a client that has too much unread data, or whose next event
   * does not fit into the budget.
   */
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

/** Opcodes from here on are control frames (RFC 6455 5.2). */
const FIRST_CONTROL = 0x08;

/** Tracks the frames of a WebSocket in its bytes, without keeping them (RFC 6455 5.2). */
export class Frames {
  /** The header bytes received: 2 bytes, then up to 8 of length and 4 of mask. */
  readonly #header = Buffer.alloc(14);
  #read = 0;
  /** The header's length, as far as known. */
  #headerLength = 2;
  /** Remaining bytes of the payload; undefined while reading a header. */
  #payload: number | undefined;
  /** Number of frames of the incomplete message. */
  #fragments = 0;
  #ended = 0;
  #isNew = false;

  /** Whether a frame or a message is incomplete. */
  get isOpen(): boolean {
    return this.#read > 0 || this.#fragments > 0;
  }

  /** Whether the incomplete frame or message started in the last bytes. */
  get isNew(): boolean {
    return this.#isNew;
  }

  /** Number of frames of the incomplete message. */
  get fragments(): number {
    return this.#fragments;
  }

  /** Processes more bytes; returns the number of messages and control frames that end in them. */
  advance(bytes: Buffer): number {
    this.#ended = 0;
    this.#isNew = !this.isOpen;
    for (let i = 0; i < bytes.length; ) {
      if (this.#payload === undefined) {
        this.#header[this.#read++] = bytes[i++] ?? 0;
        this.#advanceHeader();
      } else {
        const taken = Math.min(this.#payload, bytes.length - i);
        this.#payload -= taken;
        i += taken;
      }
      if (this.#payload === 0) this.#endFrame();
    }
    return this.#ended;
  }

  #advanceHeader(): void {
    const second = this.#header[1] ?? 0;
    const length = second & 0x7f;
    if (this.#read === 2) {
      const lengthBytes = length === 127 ? 8 : length === 126 ? 2 : 0;
      this.#headerLength = 2 + lengthBytes + (second & 0x80 ? 4 : 0);
    }
    if (this.#read < this.#headerLength) return;
    if (length === 127) this.#payload = Number(this.#header.readBigUInt64BE(2));
    else this.#payload = length === 126 ? this.#header.readUInt16BE(2) : length;
  }

  #endFrame(): void {
    const first = this.#header[0] ?? 0;
    const isFinal = (first & 0x80) !== 0;
    this.#read = 0;
    this.#headerLength = 2;
    this.#payload = undefined;
    if ((first & 0x0f) >= FIRST_CONTROL) this.#ended++;
    else if (isFinal) {
      this.#fragments = 0;
      this.#ended++;
    } else this.#fragments++;
    if (!this.isOpen) this.#isNew = true;
  }
}
