import { AsyncLocalStorage } from 'node:async_hooks';
import { connect, isIP, type Socket } from 'node:net';
import type { MaybePromise } from '../../core/scheduler.ts';
import { guardedLookup, isPrivateHost, type Network, PrivateAddressError } from './addresses.ts';
import { ReplyReader } from './reply-reader.ts';

/** A request to send. */
interface Post {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

/** The parts of a reply that are used; the rest of its body is discarded. */
interface PostReply {
  readonly status: number;
  readonly retryAfter: string | undefined;
  /** The first kilobyte of its body; never rejects. */
  readonly excerpt: MaybePromise<string>;
}

/** Sends POST requests over kept connections; redirects are not followed. */
export interface Poster extends Disposable {
  /** Rejects without a reply. */
  post(post: Post): Promise<PostReply>;
}

interface PosterOptions {
  readonly network: Network;
  readonly allowPrivate: boolean;
  /** Timeout for the body of a reply in milliseconds. Default: 5,000. */
  readonly replyTime?: number;
  /** Maximum number of idle connections that are kept. Default: no limit but that of each host. */
  readonly maxIdle?: number;
}

/** Maximum size of a reply in bytes; it is read so that the connection can be used again. */
const MAX_REPLY = 64 * 1024;
/** Maximum time to read a reply, in milliseconds: the attempt's timeout no longer applies. */
const MAX_REPLY_TIME = 5_000;
/** Maximum number of idle connections to one host. */
const MAX_IDLE_OF_HOST = 512;
/** An idle connection is not used for so long before the receiver closes it, in milliseconds. */
const SAFETY = 1_000;
/** TLS sessions that are kept to be resumed. */
const MAX_SESSIONS = 100;
/** Maximum wait for the excerpt after the status, in milliseconds: recording the outcome waits for it. */
const MAX_EXCERPT_WAIT = 500;
/** Maximum size of the kept part of an answer, in bytes. */
const MAX_ANSWER = 1_024;

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Headers that the poster alone sets. */
const OWN_HEADERS: ReadonlySet<string> = new Set(['connection', 'content-length', 'transfer-encoding']);
const BAD_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

/** Loaded for the first https URL: TLS takes 4 MB, and most services forward nothing. */
const loadTls = () => process.getBuiltinModule('node:tls');
/** Calls a function outside of any attempt, so that a connection does not hold the one that opened it. */
const outside = AsyncLocalStorage.snapshot();

/** Creates a poster; it refuses private addresses unless `allowPrivate` is set. */
export function createPoster(options: PosterOptions): Poster {
  const connections = new Connections(options);
  const { network, allowPrivate, replyTime = MAX_REPLY_TIME } = options;
  return {
    async post({ url, headers, body, signal }) {
      if (!allowPrivate && isPrivateHost(url.hostname)) throw new PrivateAddressError(url.hostname);
      network.allow(url.host);
      const message = messageOf(url, headers, body);
      signal.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<PostReply>();
      const connection = connections.take(url);
      connection.exchange = new Exchange(connection, replyTime, signal, resolve, reject);
      connection.socket.write(message);
      return promise;
    },
    [Symbol.dispose]: () => connections[Symbol.dispose](),
  };
}

/** The bytes of a request. Throws TypeError for headers that cannot be sent. */
function messageOf(url: URL, headers: Post['headers'], body: Uint8Array): Buffer {
  const fields: Record<string, string> = { host: url.host };
  for (const name in headers) {
    const value = String(headers[name]);
    if (!NAME.test(name) || BAD_VALUE.test(value)) throw new TypeError(`the header ${name} cannot be sent`);
    fields[name.toLowerCase()] = value;
  }
  let head = `POST ${url.pathname}${url.search} HTTP/1.1\r\n`;
  for (const name in fields) if (!OWN_HEADERS.has(name)) head += `${name}: ${fields[name]}\r\n`;
  head += `connection: keep-alive\r\ncontent-length: ${body.byteLength}\r\n\r\n`;
  const message = Buffer.allocUnsafe(head.length + body.byteLength);
  message.write(head, 0, 'latin1');
  message.set(body, head.length);
  return message;
}

/** A connection; it is idle while it has no exchange. */
interface Connection {
  readonly host: string;
  readonly socket: Socket;
  exchange: Exchange | undefined;
  /** Until then it may be used again, by `performance.now()`. */
  idleUntil: number;
}

/** The connections of a poster, by scheme, host and port. */
class Connections implements Disposable {
  readonly #network: Network;
  readonly #lookup: ReturnType<typeof guardedLookup>;
  readonly #maxIdle: number;
  readonly #all = new Set<Connection>();
  /** The idle ones of each host, the last used one last. */
  readonly #idle = new Map<string, Connection[]>();
  #idleCount = 0;
  readonly #sessions = new Map<string, Buffer>();

  constructor({ network, allowPrivate, maxIdle = Number.POSITIVE_INFINITY }: PosterOptions) {
    this.#network = network;
    this.#lookup = guardedLookup(network.resolver, allowPrivate);
    this.#maxIdle = maxIdle;
  }

  /** An idle connection, or a new one that may still be opening. */
  take(url: URL): Connection {
    const idle = this.#idle.get(url.origin);
    for (let last = idle?.at(-1); last !== undefined; last = idle?.at(-1)) {
      this.#forgetIdle(last);
      if (last.idleUntil > performance.now() && last.socket.writable) {
        last.socket.ref();
        return last;
      }
      last.socket.destroy();
    }
    return outside(() => this.#open(url));
  }

  #open(url: URL): Connection {
    const { origin, host, port, protocol } = url;
    const hostname = url.hostname.replace(/^\[|\]$/g, '');
    const isSecure = protocol === 'https:';
    const to = {
      host: hostname,
      port: Number(port) || (isSecure ? 443 : 80),
      lookup: this.#lookup,
      noDelay: true,
      keepAlive: true,
    };
    const socket = isSecure ? this.#openTls(origin, to) : connect(to);
    const connection: Connection = { host: origin, socket, exchange: undefined, idleUntil: 0 };
    this.#all.add(connection);
    this.#network.watch(host, socket, isSecure ? 'secureConnect' : 'connect');
    let failure: Error | undefined;
    socket.on('error', (error) => {
      failure = error;
      this.#sessions.delete(origin);
    });
    socket.on('data', (bytes: Buffer) => {
      // Bytes that no request asked for.
      if (connection.exchange === undefined) socket.destroy();
      else if (connection.exchange.read(bytes)) this.#release(connection);
    });
    socket.on('end', () => connection.exchange?.end());
    socket.on('close', () => {
      this.#all.delete(connection);
      this.#forgetIdle(connection);
      connection.exchange?.closed(failure);
    });
    return connection;
  }

  #openTls(origin: string, to: { readonly host: string; readonly port: number }): Socket {
    const session = this.#sessions.get(origin);
    const socket = loadTls().connect({
      ...to,
      servername: isIP(to.host) === 0 ? to.host : '',
      ALPNProtocols: ['http/1.1'],
      ...(session !== undefined && { session }),
    });
    socket.on('session', (given) => {
      this.#sessions.delete(origin);
      this.#sessions.set(origin, given);
      const [oldest] = this.#sessions.keys();
      if (this.#sessions.size > MAX_SESSIONS && oldest !== undefined) this.#sessions.delete(oldest);
    });
    return socket;
  }

  /** Keeps a connection after a complete exchange, or closes it. */
  #release(connection: Connection): void {
    const { socket, host, exchange } = connection;
    const keptFor = exchange?.keptFor ?? 0;
    connection.exchange = undefined;
    const idle = this.#idle.get(host) ?? [];
    const isFull = this.#idleCount >= this.#maxIdle || idle.length >= MAX_IDLE_OF_HOST;
    if (keptFor <= SAFETY || isFull || !socket.writable || socket.writableLength > 0) {
      socket.destroy();
      return;
    }
    connection.idleUntil = performance.now() + keptFor - SAFETY;
    socket.unref();
    this.#idle.set(host, idle);
    idle.push(connection);
    this.#idleCount++;
  }

  #forgetIdle(connection: Connection): void {
    const idle = this.#idle.get(connection.host) ?? [];
    const place = idle.lastIndexOf(connection);
    if (place === -1) return;
    idle.splice(place, 1);
    this.#idleCount--;
    if (idle.length === 0) this.#idle.delete(connection.host);
  }

  [Symbol.dispose](): void {
    for (const { socket } of this.#all) socket.destroy();
  }
}

/** A request that is being sent, and its reply. */
class Exchange {
  readonly #connection: Connection;
  readonly #replyTime: number;
  readonly #signal: AbortSignal;
  readonly #resolve: (reply: PostReply) => void;
  readonly #reject: (error: unknown) => void;
  readonly #reader = new ReplyReader((bytes) => this.#keep(bytes));
  #read = 0;
  #answer: Buffer | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Resolves the excerpt that is waited for. */
  #told: ((excerpt: string) => void) | undefined;
  #excerptTimer: NodeJS.Timeout | undefined;

  constructor(
    connection: Connection,
    replyTime: number,
    signal: AbortSignal,
    resolve: (reply: PostReply) => void,
    reject: (error: unknown) => void,
  ) {
    this.#connection = connection;
    this.#replyTime = replyTime;
    this.#signal = signal;
    this.#resolve = resolve;
    this.#reject = reject;
    signal.addEventListener('abort', this.#abort);
  }

  get keptFor(): number {
    return this.#reader.keptFor;
  }

  /** Reads bytes of the reply; whether it is complete. */
  read(bytes: Buffer): boolean {
    const hadHead = this.#reader.head !== undefined;
    try {
      this.#reader.read(bytes);
    } catch (error) {
      this.#connection.socket.destroy();
      this.#reject(error);
      return false;
    }
    if (!hadHead) this.#answered();
    if (this.#reader.isComplete) {
      this.#finish();
      return true;
    }
    this.#read += bytes.length;
    // It is of no use to read more, so its connection is given up.
    if (this.#read > MAX_REPLY) this.#connection.socket.destroy();
    return false;
  }

  /** The receiver has ended the connection. */
  end(): void {
    if (this.#reader.end()) this.#finish();
  }

  closed(failure: Error | undefined): void {
    this.#finish();
    if (this.#reader.head !== undefined) return;
    const hangUp = () => Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
    this.#reject(failure ?? hangUp());
  }

  /** Tells of the reply once its head is there. */
  #answered(): void {
    const { head, isComplete } = this.#reader;
    if (head === undefined) return;
    if (isComplete) {
      this.#resolve({ ...head, excerpt: this.#excerpt() });
      return;
    }
    const { promise, resolve } = Promise.withResolvers<string>();
    this.#told = resolve;
    this.#excerptTimer = setTimeout(this.#tell, MAX_EXCERPT_WAIT);
    this.#timer = setTimeout(() => this.#connection.socket.destroy(), this.#replyTime).unref();
    this.#resolve({ ...head, excerpt: promise });
    if (this.#isFull) this.#tell();
  }

  get #isFull(): boolean {
    return this.#answer !== undefined && this.#answer.length >= MAX_ANSWER;
  }

  #keep(bytes: Buffer): void {
    const { length = 0 } = this.#answer ?? {};
    if (length >= MAX_ANSWER) return;
    const part = bytes.subarray(0, MAX_ANSWER - length);
    this.#answer = Buffer.concat(this.#answer === undefined ? [part] : [this.#answer, part]);
    if (this.#isFull) this.#tell();
  }

  readonly #tell = (): void => {
    clearTimeout(this.#excerptTimer);
    this.#told?.(this.#excerpt());
    this.#told = undefined;
  };

  /** The start of the body as text; `stream` omits an incomplete character at the end. */
  #excerpt(): string {
    return this.#answer === undefined ? '' : new TextDecoder().decode(this.#answer, { stream: true });
  }

  #finish(): void {
    clearTimeout(this.#timer);
    this.#tell();
    this.#signal.removeEventListener('abort', this.#abort);
  }

  readonly #abort = (): void => {
    this.#connection.socket.destroy();
    this.#reject(this.#signal.reason);
  };
}
