import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { MaybePromise } from '../../../src/core/scheduler.ts';
import type { BodyBudget } from '../body/body-budget.ts';
import { LARGE_REPLY } from '../reply/reply-budget.ts';
import type { Connection, InFlight } from '../server/connections.ts';
import { LIMITS } from '../server/limits.ts';

/** Answers the plain requests of connections. */
export interface FastRouter<Route> {
  /** Bounds the memory of incomplete bodies. */
  readonly bodyBudget: BodyBudget;
  /** The route of a request; undefined if the fast path cannot answer it. */
  find(request: PlainRequest): Route | undefined;
  /** Answers a request whose bytes are in `chunk`. Must call `connection.lease` first. */
  answer(connection: FastConnection<Route>, request: PlainRequest, route: Route, chunk: Buffer): void;
}

/** A request with an incomplete body. */
interface Begun {
  readonly request: PlainRequest;
  /** Sized for the complete request. */
  readonly bytes: Buffer;
  /** The number of bytes received. */
  length: number;
}

/** How long to wait for the rest of a body before Node's parser gets the request, in milliseconds. */
const BODY_TIMEOUT = 20;
/** Larger requests that arrive in pieces are left to Node's parser, in bytes. */
const MAX_PIECES = 16 * 1024;
const NOTHING = Buffer.alloc(0);

/**
 * A connection whose bytes the fast path sees before Node's parser. While every request is plain, the fast
 * path knows where each one ends, so either of them can answer the next. After a request that is not plain,
 * or one that arrives while another is being answered, all further bytes go to the parser.
 *
 * States: idle -> begun (the body is incomplete) -> leased (being answered) -> idle; from each of them to
 * aside, which is final.
 */
export class FastConnection<Route> {
  readonly #connection: Connection;
  readonly #reader: NodeReader;
  readonly #router: FastRouter<Route>;
  readonly #requestReader = new PlainRequestReader();
  /** Bytes of the current body that are still to be passed to the parser. */
  #unparsed = 0;
  #begun: Begun | undefined;
  #bodyTimer: NodeJS.Timeout | undefined;
  #isAside = false;
  /** Whether the client has closed its half during the leased request. */
  #hasEnded = false;

  constructor(connection: Connection, reader: NodeReader, router: FastRouter<Route>) {
    this.#connection = connection;
    this.#reader = reader;
    this.#router = router;
    const { socket } = connection;
    // Node's parser reads the socket natively, bypassing all listeners, until another listener is added.
    socket.on('data', this.#read).off('data', reader.parse);
    socket.on('end', this.#end).off('end', reader.end);
    socket.once('close', () => {
      this.#takeBegun();
    });
  }

  /** Whether the current reply is the connection's last. */
  get isLast(): boolean {
    // Bytes that the parser received meanwhile still have to be answered.
    return (this.#hasEnded && !this.#isAside) || this.#connection.requestLimitReached;
  }

  get socket(): Socket {
    return this.#connection.socket;
  }

  /** Begins to answer a request. */
  lease(leased: InFlight): void {
    this.#connection.lease(leased);
  }

  /**
   * Writes the reply to the leased request, and closes the connection after it if it is the `last` one. Calls
   * `done` once the system has taken the bytes; does nothing if the client has disconnected.
   */
  reply(head: string, body: string | Buffer, last: boolean, done: () => void): void {
    const { leased, socket } = this.#connection;
    if (leased === undefined || !socket.writable) return;
    if (typeof body === 'string' && body.length < LARGE_REPLY) {
      // Heads are ASCII; if the body is ASCII too, V8 already stores the text as Latin-1.
      socket.write(head + body, Buffer.byteLength(body) === body.length ? 'latin1' : 'utf8');
    } else {
      socket.cork();
      socket.write(head, 'latin1');
      // Node would hold a string twice while the client does not read it.
      socket.write(typeof body === 'string' ? Buffer.from(body) : body);
      socket.uncork();
    }
    this.#complete(last, done);
  }

  /** Writes a piece of the reply to the leased request; `head` comes before the first piece. */
  writePiece(head: string, piece: Buffer, isChunked: boolean): void {
    const { socket } = this.#connection;
    if (!socket.writable) return;
    socket.cork();
    socket.write(isChunked ? `${head}${piece.length.toString(16)}\r\n` : head, 'latin1');
    socket.write(piece);
    if (isChunked) socket.write('\r\n', 'latin1');
    socket.uncork();
  }

  /** Ends a reply in pieces by writing `end` after them. */
  endPieces(end: string, last: boolean, done: () => void): void {
    const { leased, socket } = this.#connection;
    if (leased === undefined || !socket.writable) return;
    if (end !== '') socket.write(end, 'latin1');
    this.#complete(last, done);
  }

  /** Returns once the system has taken all written bytes, or the client has disconnected. */
  whenTaken(): MaybePromise<void> {
    const { socket } = this.#connection;
    if (socket.writableLength === 0) return undefined;
    return new Promise((resolve) => socket.write('', () => resolve()));
  }

  #complete(last: boolean, done: () => void): void {
    const { socket } = this.#connection;
    const sent = socket.writableLength === 0;
    const onSent = () => {
      done();
      this.#connection.release();
    };
    // Usually the system takes the bytes at once; the stream would report that a tick later.
    if (!sent) {
      socket.write('', (error) => {
        if (!error) onSent();
      });
    }
    if (last) socket.destroySoon();
    if (sent && socket.errored === null) onSent();
  }

  /** Closes the connection without a reply. */
  cut(): void {
    this.#connection.socket.destroy();
  }

  readonly #read = (chunk: Buffer): void => {
    if (this.#connection.leased !== undefined) {
      // The server delays requests from the parser until the leased request is answered.
      this.#stepAside();
      this.#reader.parse(chunk);
    } else if (this.#unparsed > 0) {
      this.#unparsed -= chunk.length;
      if (this.#unparsed < 0) this.#stepAside();
      this.#reader.parse(chunk);
    } else if (this.#begun === undefined) this.#receive(chunk);
    else this.#receiveMore(this.#begun, chunk);
  };

  readonly #end = (): void => {
    // Passes an incomplete request to the parser, which refuses it.
    this.#giveUp();
    if (this.#connection.leased === undefined) {
      this.#passEnd();
      return;
    }
    // Node is unaware of the leased request and would close the connection before its reply.
    this.#hasEnded = true;
    if (this.#isAside) this.#connection.whenFree(() => this.#passEnd());
  };

  #passEnd(): void {
    const { socket } = this.#connection;
    // Node may have given the parser of a destroyed or upgraded connection to another connection.
    const listeners: readonly unknown[] = socket.listeners('data');
    if (!socket.destroyed && (!this.#isAside || listeners.includes(this.#reader.parse))) this.#reader.end();
  }

  #receive(chunk: Buffer): void {
    const request = this.#requestReader.read(chunk);
    if (request === undefined) {
      this.#stepAside();
      this.#reader.parse(chunk);
      return;
    }
    const { length } = request;
    const route = this.#isFree() ? this.#router.find(request) : undefined;
    if (route === undefined) this.#parse(chunk, length);
    else if (length === chunk.length) this.#router.answer(this, request, route, chunk);
    else if (request.method === 'GET' || length > MAX_PIECES || !this.#begin(request, chunk)) {
      this.#parse(chunk, length);
    }
  }

  /**
   * Waits for the rest of a body, because many clients send head and body separately. False if the budget
   * is full.
   */
  #begin(request: PlainRequest, chunk: Buffer): boolean {
    const { length } = request;
    const client = this.socket.remoteAddress ?? '';
    if (!this.#router.bodyBudget.take(length, { caller: undefined, client })) return false;
    const bytes = Buffer.allocUnsafeSlow(length);
    bytes.set(chunk);
    this.#begun = { request, bytes, length: chunk.length };
    this.#bodyTimer = setTimeout(this.#giveUp, BODY_TIMEOUT);
    return true;
  }

  #receiveMore(begun: Begun, chunk: Buffer): void {
    const { request, bytes } = begun;
    if (begun.length + chunk.length > request.length) {
      const all = Buffer.concat([this.#takeBegun(), chunk]);
      this.#stepAside();
      this.#reader.parse(all);
      return;
    }
    bytes.set(chunk, begun.length);
    begun.length += chunk.length;
    if (begun.length < request.length) return;
    this.#takeBegun();
    const route = this.#isFree() ? this.#router.find(request) : undefined;
    if (route === undefined) this.#parse(bytes, request.length);
    else this.#router.answer(this, request, route, bytes);
  }

  /** Passes bytes to the parser; `length` is the length of the whole request. */
  #parse(chunk: Buffer, length: number): void {
    this.#unparsed = length - chunk.length;
    this.#reader.parse(chunk);
  }

  /** Stops waiting for the incomplete request and returns its bytes. */
  #takeBegun(): Buffer {
    const begun = this.#begun;
    if (begun === undefined) return NOTHING;
    clearTimeout(this.#bodyTimer);
    this.#begun = undefined;
    this.#router.bodyBudget.release(begun.request.length);
    return begun.bytes.subarray(0, begun.length);
  }

  /** Passes an incomplete request to the parser. */
  readonly #giveUp = (): void => {
    const begun = this.#begun;
    if (begun !== undefined) this.#parse(this.#takeBegun(), begun.request.length);
  };

  /**
   * Whether the fast path may answer. The first request goes to Node's parser, which otherwise times the
   * connection out as late with its first request.
   */
  #isFree(): boolean {
    const { isProven, reply, socket } = this.#connection;
    return isProven && reply === undefined && socket.writable;
  }

  #stepAside(): void {
    this.#isAside = true;
    const { socket } = this.#connection;
    socket.on('data', this.#reader.parse).off('data', this.#read);
  }
}

/** Node's own listeners on a connection's socket. */
interface NodeReader {
  /** Passes bytes to Node's parser. */
  readonly parse: (chunk: Buffer) => void;
  /** Tells Node that the client has closed its half. */
  readonly end: () => void;
}

type Listener = (...args: readonly unknown[]) => void;

/**
 * Finds Node's listeners on a new connection's socket. They are undocumented: returns undefined if there are
 * other listeners or if Node's are not the expected ones.
 */
export function nodeReader(socket: Socket): NodeReader | undefined {
  const [parse, ...otherData] = socket.listeners('data') as Listener[];
  // The first `end` listener is the socket's own.
  const [own, end, ...otherEnds] = socket.listeners('end') as Listener[];
  if (parse === undefined || otherData.length > 0) return undefined;
  if (own?.name !== 'onReadableStreamEnd' || end === undefined || otherEnds.length > 0) return undefined;
  return { parse: parse as NodeReader['parse'], end: end as NodeReader['end'] };
}

/** A request with unambiguous framing. */
export interface PlainRequest {
  readonly method: string;
  /** Path and query, as sent. */
  readonly url: string;
  /** By name in lower case; no name is repeated, and Content-Type is left out. */
  readonly headers: Readonly<IncomingHttpHeaders>;
  /** The Content-Type header; null if absent. */
  readonly contentType: string | null;
  /** The bytes before the body, decoded as Latin-1. */
  readonly head: string;
  /** Length of head and body, in bytes. */
  readonly length: number;
}

/** Maximum head size, in bytes. Longer heads are rare and go to Node's parser, which has its own limit. */
const MAX_HEAD = 8 * 1024;
/** Longer heads are not cached, so that many connections use little memory, in bytes. */
const MAX_REMEMBERED = 1024;
const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * The plain subset of RFC 9112 2.1: a common method, a path, HTTP/1.1 and lines that end with CRLF. No two
 * alternatives can begin alike, so matching takes linear time.
 */
const HEAD =
  /^(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) \/[\w\-.~!$&'()*+,;=:@%/?]* HTTP\/1\.1\r\n(?:[\w-]+:[\t\x20-\x7e\x80-\xff]*\r\n)+\r\n$/;
const LENGTH = /^\d{1,15}$/;

/**
 * Parses the request at the start of `chunk`. Returns undefined unless it is plain: the head must be
 * complete, nothing may follow the body, no field may be repeated, and no field may affect the connection or
 * the body's framing. Node's parser reads plain requests identically.
 */
export function readPlainRequest(chunk: Buffer): PlainRequest | undefined {
  const end = chunk.indexOf(HEAD_END);
  if (end === -1 || end > MAX_HEAD) return undefined;
  const head = chunk.toString('latin1', 0, end + HEAD_END.length);
  if (!HEAD.test(head)) return undefined;
  const methodEnd = head.indexOf(' ');
  const urlEnd = head.indexOf(' ', methodEnd + 1);
  const headers = readFields(head, head.indexOf('\n', urlEnd) + 1);
  if (headers === undefined || !isUsual(headers)) return undefined;
  const length = head.length + Number(headers['content-length'] ?? 0);
  if (length < chunk.length) return undefined;
  const contentType = headers['content-type'] ?? null;
  if (contentType !== null) headers['content-type'] = undefined;
  return {
    method: head.slice(0, methodEnd),
    url: head.slice(methodEnd + 1, urlEnd),
    headers,
    contentType,
    head,
    length,
  };
}

/**
 * Parses the requests of a connection. Most clients repeat their head byte for byte, so the last one is
 * cached.
 */
export class PlainRequestReader {
  #last: PlainRequest | undefined;

  /** Like `readPlainRequest`; returns the same object for the same head. */
  read(chunk: Buffer): PlainRequest | undefined {
    const last = this.#last;
    if (last !== undefined && chunk.toString('latin1', 0, last.head.length) === last.head) {
      return chunk.length > last.length ? undefined : last;
    }
    const request = readPlainRequest(chunk);
    this.#last = request !== undefined && request.head.length <= MAX_REMEMBERED ? request : undefined;
    return request;
  }
}

/** Undefined if a name is repeated or is a property that every object inherits. */
function readFields(head: string, start: number): IncomingHttpHeaders | undefined {
  const headers: IncomingHttpHeaders = {};
  let count = 0;
  const end = head.length - 2;
  for (let line = start; line < end; ) {
    const colon = head.indexOf(':', line);
    const lineEnd = head.indexOf('\r', colon);
    const name = head.slice(line, colon).toLowerCase();
    // Node drops fields beyond this limit.
    if (headers[name] !== undefined || ++count >= LIMITS.maxHeaders) return undefined;
    headers[name] = withoutBlanks(head, colon + 1, lineEnd);
    line = lineEnd + 2;
  }
  return headers;
}

/** Strips spaces and tabs (RFC 9112 5.1); String.trim would strip more. */
function withoutBlanks(text: string, start: number, end: number): string {
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/** Whether no field affects the connection and the body's length is plain. */
function isUsual(headers: IncomingHttpHeaders): boolean {
  const { connection, 'content-length': length } = headers;
  return (
    headers.host !== undefined &&
    (connection === undefined || connection === 'keep-alive' || connection === 'Keep-Alive') &&
    (length === undefined || LENGTH.test(length)) &&
    headers['transfer-encoding'] === undefined &&
    headers.upgrade === undefined &&
    headers.expect === undefined &&
    // Node's parser treats it like Connection.
    headers['proxy-connection'] === undefined &&
    // Node turns it into an array.
    headers['set-cookie'] === undefined
  );
}
