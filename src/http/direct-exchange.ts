import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { FastifyBaseLogger } from 'fastify';
import type { MaybePromise } from '../users/maybe-promise.ts';
import type { ReplyRecorder } from './direct-lane.ts';
import type { ErrorFormat } from './error-format.ts';
import { handOverBody } from './handed-over-body.ts';
import { toProblem } from './problem.ts';

export interface DirectOptions {
  readonly errors: ErrorFormat;
  /** The framework's own, whose level can be changed. */
  readonly log: FastifyBaseLogger;
  /** The id of the next request. */
  nextId(): string;
  /** Whether the framework has to deal with this request whatever it asks for. */
  mustSee(request: IncomingMessage): boolean;
}

/** A request in the direct lane, and the ways to end it. */
export class DirectExchange {
  readonly request: IncomingMessage;
  /** What stands in the path's last segment, of a route that has a parameter there; as it came, not decoded. */
  readonly param: string;
  readonly #response: ServerResponse;
  readonly #framework: RequestListener;
  readonly #record: ReplyRecorder | undefined;
  readonly #options: DirectOptions;
  readonly #id: string;
  readonly #began = performance.now();

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    param: string,
    framework: RequestListener,
    record: ReplyRecorder | undefined,
    options: DirectOptions,
  ) {
    this.request = request;
    this.param = param;
    this.#response = response;
    this.#framework = framework;
    this.#record = record;
    this.#options = options;
    this.#id = options.nextId();
  }

  /** Has `send` reply with a value once it is there; whatever fails is replied as a problem. */
  answer<T>(value: MaybePromise<T>, send: (value: T) => void): void {
    if (value instanceof Promise) value.then(send).catch((error: unknown) => this.fail(error));
    else send(value);
  }

  /** Replies with a text. */
  send(status: number, contentType: string, body: string, headers?: Readonly<Record<string, string>>): void {
    this.#send(status, { ...headers, 'content-type': contentType }, body);
  }

  /** Replies with what went wrong, in the door's format; what is our own fault is logged. */
  fail(error: unknown): void {
    const { errors, log } = this.#options;
    const problem = toProblem(error);
    if (problem.status >= 500) log.error({ reqId: this.#id, err: error }, 'request failed');
    if (this.#response.headersSent) return;
    const { method = '', url = '' } = this.request;
    const body = errors.body(problem, { method, url });
    this.#send(problem.status, { ...problem.headers, 'content-type': errors.contentType }, body);
  }

  /** Logs what went wrong behind a reply. */
  logError(error: unknown, message: string): void {
    this.#options.log.error({ reqId: this.#id, err: error }, message);
  }

  /**
   * Reads a body whose length is known and at most `limit` bytes, then calls `done`; returns false, with nothing
   * read, when it is another one. A client that goes away in between ends it.
   */
  readBody(limit: number, done: (body: Buffer) => void): boolean {
    const { request } = this;
    const length = Number(request.headers['content-length']);
    // No body, or one that does not tell its length.
    if (!(length > 0 && length <= limit)) return false;
    let body: Buffer | undefined;
    let chunks: Buffer[] | undefined;
    request.on('data', (chunk: Buffer) => {
      if (body === undefined) body = chunk;
      else {
        chunks ??= [body];
        chunks.push(chunk);
      }
    });
    request.on('end', () => {
      try {
        if (chunks !== undefined) done(Buffer.concat(chunks));
        else if (body !== undefined) done(body);
      } catch (error) {
        this.fail(error);
      }
    });
    return true;
  }

  /** Gives the request to the framework after all, with the body that was read from it if there was one. */
  handOver(body?: Buffer): void {
    if (body !== undefined) handOverBody(this.request, body);
    this.#framework(this.request, this.#response);
  }

  /** Calls a listener when the reply is out or the client is gone. */
  once(event: 'close', listener: () => void): void {
    this.#response.once(event, listener);
  }

  #send(status: number, headers: Readonly<Record<string, string>>, body: string): void {
    const response = this.#response;
    response.writeHead(status, {
      'x-request-id': this.#id,
      'x-content-type-options': 'nosniff',
      ...headers,
      'content-length': Buffer.byteLength(body),
    });
    response.end(body);
    if (this.#record === undefined) return;
    // As a rule all of it is with the system by now; nobody counts the reply to a client that is gone.
    if (response.writableFinished && !response.destroyed) this.#recordReply(status);
    else response.once('finish', () => this.#recordReply(status));
  }

  #recordReply(status: number): void {
    this.#record?.(this.request.method ?? '', status, performance.now() - this.#began);
  }
}
