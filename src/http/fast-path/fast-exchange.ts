import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyBaseLogger } from 'fastify';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { ErrorFormat } from '../error-format.ts';
import { toProblem } from '../problem.ts';
import type { DirectConnection, Taken } from './connection.ts';
import type { ReplyRecorder } from './fast-path.ts';
import type { PlainRequest } from './plain-request.ts';
import type { ReplyHeads } from './reply-heads.ts';

export interface DirectOptions {
  readonly errors: ErrorFormat;
  /** The framework's own, whose level can be changed. */
  readonly log: FastifyBaseLogger;
  readonly heads: ReplyHeads;
  /** The id of the next request. */
  nextId(): string;
  /** Whether the door drains: each reply asks the client to go elsewhere. */
  isDraining(): boolean;
}

/** What an exchange needs of its connection. */
type Connection = Pick<DirectConnection<never>, 'reply' | 'handOver' | 'isWornOut'>;

/** A request in the direct lane, and the ways to end it. */
export class DirectExchange implements Taken {
  /** What stands in the path's last segment, of a route that has a parameter there; as it came, not decoded. */
  readonly param: string;
  readonly #connection: Connection;
  readonly #request: PlainRequest;
  readonly #chunk: Buffer;
  readonly #record: ReplyRecorder | undefined;
  readonly #options: DirectOptions;
  readonly #id: string;
  readonly #began = performance.now();
  #onClose: (() => void) | undefined;
  /** Or handed over. */
  #replied = false;

  /** `chunk` is what the connection brought: the request and nothing else. */
  constructor(
    connection: Connection,
    request: PlainRequest,
    chunk: Buffer,
    param: string,
    record: ReplyRecorder | undefined,
    options: DirectOptions,
  ) {
    this.param = param;
    this.#connection = connection;
    this.#request = request;
    this.#chunk = chunk;
    this.#record = record;
    this.#options = options;
    this.#id = options.nextId();
  }

  get headers(): Readonly<IncomingHttpHeaders> {
    return this.#request.headers;
  }

  /** Empty when there is none. */
  get body(): Buffer {
    return this.#chunk.subarray(this.#request.head.length);
  }

  /** Has `send` reply with a value once it is there; whatever fails is replied as a problem. */
  answer<T>(value: MaybePromise<T>, send: (value: T) => void): void {
    if (!(value instanceof Promise)) {
      send(value);
      return;
    }
    value.then(
      (there) => {
        try {
          send(there);
        } catch (error) {
          this.fail(error);
        }
      },
      (error: unknown) => this.fail(error),
    );
  }

  /** Replies with a text. */
  send(status: number, contentType: string, body: string, headers?: Readonly<Record<string, string>>): void {
    if (this.#replied) return;
    this.#replied = true;
    const connection = this.#connection;
    const { heads, isDraining } = this.#options;
    const afterwards = isDraining() ? 'drains' : connection.isWornOut ? 'worn out' : 'stays';
    const length = Buffer.byteLength(body);
    const text = heads.head(status, this.#id, contentType, length, headers, afterwards) + body;
    // Heads are ASCII, and Latin-1 is what a text of one byte per character is already.
    const encoding = length === body.length ? 'latin1' : 'utf8';
    connection.reply(text, encoding, afterwards !== 'stays', () => {
      this.#onClose?.();
      this.#record?.(this.#request.method, status, performance.now() - this.#began);
    });
  }

  /** Replies with what went wrong, in the door's format; what is our own fault is logged. */
  fail(error: unknown): void {
    const { errors, log } = this.#options;
    const problem = toProblem(error);
    if (problem.status >= 500) log.error({ reqId: this.#id, err: error }, 'request failed');
    const { method, url } = this.#request;
    this.send(problem.status, errors.contentType, errors.body(problem, { method, url }), problem.headers);
  }

  /** Logs what went wrong behind a reply. */
  logError(error: unknown, message: string): void {
    this.#options.log.error({ reqId: this.#id, err: error }, message);
  }

  /** Gives the request to the framework after all. */
  handOver(): void {
    if (this.#replied) return;
    this.#replied = true;
    this.#onClose?.();
    this.#connection.handOver(this.#chunk);
  }

  /** Calls a listener, the only one, when the reply is out, the client is gone or the framework has the request. */
  once(_event: 'close', listener: () => void): void {
    this.#onClose = listener;
  }

  abandon(): void {
    this.#onClose?.();
  }
}
