import type { Socket } from 'node:net';
import {
  type Arrival,
  type BodyBudget,
  type BodySender,
  type HttpProblem,
  MAX_BEHIND,
  type ReplyBudget,
  type RequestContext,
  type SentReply,
  takenBy,
  type Unread,
} from '@portico/transport';
import type { WebSocket } from 'ws';

/** The service may be able to take it later (RFC 6455 7.4.1, "Try Again Later"). */
const TRY_AGAIN = 1013;
/** The memory that each piece takes beside its bytes, however few these are. */
const PIECE = 256;
/** What holds less is not counted: most messages come at once and are read at once. */
const UNCOUNTED = 4 * 1024;

/** Whose messages are read, and what bounds them. */
interface InboundQueueOptions {
  readonly client: WebSocket;
  /** The connection below it. */
  readonly socket: Socket;
  readonly outlet: OutboundQueue;
  /** Bounds what clients have sent and nobody has read yet. */
  readonly budget: BodyBudget;
  /** The request that became the WebSocket. */
  readonly ctx: RequestContext;
}

/** Takes a message. */
type ReadMessage = (message: Buffer, isBinary: boolean) => void;

/**
 * Reads the messages of one client, one per turn of the event loop. While the client does not read what waits for it, its
 * messages wait too, so that what it asks for cannot pile up. What has come and is not read yet counts into a budget:
 * messages that have not ended with the memory that they keep from being freed, which is that of all bytes since their
 * beginning, and messages that wait.
 */
export class InboundQueue implements BodySender {
  readonly #options: InboundQueueOptions;
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

  constructor(options: InboundQueueOptions) {
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

/** Sends to one client, and bounds what waits for it. */
export class OutboundQueue {
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

/** The opcodes from which on a frame controls the connection (RFC 6455 5.2). */
const FIRST_CONTROL = 0x08;

/** Follows the frames of a WebSocket through its bytes, without keeping any of them (RFC 6455 5.2). */
export class Frames {
  /** What has come of a header: 2 bytes, then the length of up to 8 and the mask of 4. */
  readonly #header = Buffer.alloc(14);
  #read = 0;
  /** The length of the header, as far as it is known. */
  #headerLength = 2;
  /** Bytes of the payload that are still to come; undefined in a header. */
  #payload: number | undefined;
  /** Frames so far of a message that has not ended. */
  #fragments = 0;
  #ended = 0;
  #isNew = false;

  /** Whether a frame or a message has begun and not ended. */
  get isOpen(): boolean {
    return this.#read > 0 || this.#fragments > 0;
  }

  /** Whether what is open has begun in the bytes that were followed last. */
  get isNew(): boolean {
    return this.#isNew;
  }

  /** Frames so far of the message that has not ended. */
  get fragments(): number {
    return this.#fragments;
  }

  /** Follows more bytes; returns how many messages and control frames end in them. */
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
