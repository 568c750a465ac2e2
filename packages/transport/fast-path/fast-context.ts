import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyBaseLogger } from 'fastify';
import type { OwnHosts } from '../../../src/core/addresses.ts';
import type { MaybePromise } from '../../../src/core/scheduler.ts';
import { requestFields } from '../../../src/core/trace.ts';
import { type BodyBudget, busy } from '../body/body-budget.ts';
import type { KnownCaller } from '../caller.ts';
import { onClientAbort } from '../client-abort.ts';
import type { Endpoint, Reply, RequestContext } from '../endpoint.ts';
import { type ErrorFormat, refusal } from '../error-format.ts';
import { withVary } from '../fastify.ts';
import { bodyTooLarge } from '../problem.ts';
import { LARGE_REPLY, type ReplyBudget, takenBy } from '../reply/reply-budget.ts';
import {
  dropPieces,
  isPieces,
  type Pieces,
  type PiecewiseReply,
  SOURCE_FAILED,
  takenPieces,
} from '../reply/reply-streams.ts';
import type {
  RecordedExchange,
  ReplyRecorder,
  RequestSpan,
  RequestTracing,
  TracedRequest,
} from '../request-events.ts';
import type { Connections, InFlight } from '../server/connections.ts';
import type { Forwarding } from '../server/guards.ts';
import type { FastConnection, PlainRequest } from './fast-connection.ts';
import { lastSegment, readPlainQuery } from './plain-query.ts';
import { isChunked, type ReplyHeads } from './reply-heads.ts';

/** Options shared by all fast-path requests of a door. */
export interface FastRequestOptions {
  /** The format of refusals. */
  readonly errors: ErrorFormat;
  /** Fastify's own logger, whose level can change. */
  readonly log: FastifyBaseLogger;
  readonly heads: ReplyHeads;
  readonly connections: Connections;
  readonly bodyBudget: BodyBudget;
  readonly replyBudget: ReplyBudget;
  /** Returns the id of the next request. */
  nextId(): string;
  readonly scheme: 'http' | 'https';
  /** Evaluates the headers of trusted proxies. */
  readonly forwarding: Forwarding;
  readonly tracing: RequestTracing | undefined;
  /** The host names that requests may ask for; undefined for any. */
  ownHosts(): OwnHosts | undefined;
  /** Whether each reply closes its connection. */
  isDraining(): boolean;
}

/** A route as the fast path runs it. */
export interface FastRoute {
  readonly endpoint: Endpoint;
  /** Counts and times the replies of the route. */
  readonly record: ReplyRecorder | undefined;
  /** The path's template. */
  readonly url: string;
  /** Whether the path ends with a parameter. */
  readonly hasParam: boolean;
}

const NO_BODY = Buffer.alloc(0);

/** A request that the fast path answers. */
export class FastRequestContext implements RequestContext, InFlight, PiecewiseReply, TracedRequest {
  readonly id: string;
  readonly param: string;
  readonly #connection: FastConnection<FastRoute>;
  readonly #request: PlainRequest;
  /** The bytes of the request until it is answered. */
  #chunk: Buffer;
  /** The bytes that currently count towards the body budget. */
  #bodyHeld = 0;
  readonly #route: FastRoute;
  readonly #options: FastRequestOptions;
  readonly #began = performance.now();
  caller: KnownCaller | undefined;
  #onClose: (() => void) | undefined;
  #span: RequestSpan | undefined;
  /** The status, the head and the duration in milliseconds of the complete reply. */
  #status = 0;
  #head = '';
  #duration = 0;
  #replied = false;
  #isCancelled = false;
  #added: Reply['headers'];
  #query: RequestContext['query'] | undefined;

  /** `chunk` holds exactly the bytes of the request. */
  constructor(
    connection: FastConnection<FastRoute>,
    request: PlainRequest,
    route: FastRoute,
    chunk: Buffer,
    options: FastRequestOptions,
  ) {
    this.id = options.nextId();
    this.param = route.hasParam ? lastSegment(request.url) : '';
    this.#connection = connection;
    this.#request = request;
    this.#chunk = chunk;
    this.#route = route;
    this.#options = options;
  }

  get method(): string {
    return this.#request.method;
  }

  get route(): string {
    return this.#route.url;
  }

  get target(): string {
    return this.#request.url;
  }

  get scheme(): 'http' | 'https' {
    const { forwarding, scheme } = this.#options;
    const asked = forwarding.scheme(this.#connection.socket.remoteAddress, this.#request.headers, scheme);
    return asked === 'https' ? 'https' : 'http';
  }

  get client(): string {
    return this.#options.forwarding.client(this.#connection.socket.remoteAddress, this.#request.headers);
  }

  get host(): string {
    return this.#options.forwarding.host(this.#connection.socket.remoteAddress, this.#request.headers);
  }

  get headers(): Readonly<IncomingHttpHeaders> {
    return this.#request.headers;
  }

  get contentType(): string | null {
    return this.#request.contentType;
  }

  get query(): RequestContext['query'] {
    this.#query ??= readPlainQuery(this.#request.url);
    return this.#query;
  }

  get body(): Buffer {
    return this.#route.endpoint.bodyLimit === 0 ? NO_BODY : this.#chunk.subarray(this.#request.head.length);
  }

  get stream(): never {
    throw new TypeError('The fast path has no streamed bodies');
  }

  get request(): never {
    throw new TypeError("The fast path has no request of Fastify's");
  }

  get log(): FastifyBaseLogger {
    return this.#options.log;
  }

  addHeaders(headers: Readonly<Record<string, string>>): void {
    const added = this.#added;
    this.#added = added === undefined ? headers : { ...added, ...withVary(added.vary, headers) };
  }

  onClose(listener: () => void): void {
    if (this.#isCancelled) {
      listener();
      return;
    }
    const before = this.#onClose;
    this.#onClose =
      before === undefined
        ? listener
        : () => {
            before();
            listener();
          };
  }

  onAbort(listener: () => void): () => void {
    return onClientAbort(this.#connection.socket, (close) => this.onClose(close), listener);
  }

  taken(): number {
    return takenBy(this.#connection.socket);
  }

  whenTaken(): MaybePromise<void> {
    return this.#connection.whenTaken();
  }

  cut(): void {
    this.#connection.cut();
  }

  onFailure(error: unknown): void {
    this.log.warn({ ...requestFields(this), err: error }, SOURCE_FAILED);
  }

  cancel(): void {
    this.#isCancelled = true;
    this.#span?.end(0);
    this.#close();
  }

  /** Runs the endpoint and sends its reply. Never throws. */
  run(): void {
    this.#connection.lease(this);
    this.#span = this.#options.tracing?.begin(this);
    if (this.#span === undefined) this.#answer();
    else this.#span.run(() => this.#answer());
  }

  #answer(): void {
    const { endpoint } = this.#route;
    const { bodyLimit } = endpoint;
    const bodyLength = bodyLimit === 0 ? 0 : this.#chunk.length - this.#request.head.length;
    try {
      // The body has already arrived, but credentials are checked before a lack of memory is reported.
      if (bodyLength > 0 && this.#options.bodyBudget.take(bodyLength, this)) this.#bodyHeld = bodyLength;
      const authorized = endpoint.authorize?.(this, Math.min(bodyLength, bodyLimit));
      if (authorized instanceof Promise) {
        authorized.then(
          () => this.#handle(bodyLength),
          (error: unknown) => this.#fail(error),
        );
      } else this.#handle(bodyLength);
    } catch (error) {
      this.#fail(error);
    }
  }

  #handle(bodyLength: number): void {
    // The client has disconnected during authorization.
    if (this.#isCancelled) {
      this.#dropBody();
      return;
    }
    const { endpoint } = this.#route;
    try {
      if (bodyLength > endpoint.bodyLimit) throw bodyTooLarge();
      // Fastify closes the connection whenever it cannot read a body.
      if (bodyLength !== this.#bodyHeld) throw busy({ connection: 'close' });
      const answer = endpoint.handle(this);
      if (answer instanceof Promise) {
        answer.then(
          (reply) => this.#settle(reply),
          (error: unknown) => this.#fail(error),
        );
      } else this.#send(answer);
    } catch (error) {
      this.#fail(error);
    }
  }

  #settle(reply: Reply): void {
    try {
      this.#send(reply);
    } catch (error) {
      this.#fail(error);
    }
  }

  #send(reply: Reply): void {
    const { status, body } = reply;
    if (typeof body === 'object' && !Buffer.isBuffer(body)) {
      this.#sendLong(reply, body);
      return;
    }
    this.#dropBody();
    if (this.#replied || this.#isCancelled) return;
    const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
    this.#options.replyBudget.take(length, this);
    const { head, isLast } = this.#begin(reply, length);
    const connection = this.#connection;
    connection.reply(head, body, isLast, () => this.#recordReply(status, head));
    // Behind bytes that the client has not read, even a small reply waits.
    if (length < LARGE_REPLY && connection.socket.writableLength > 0) {
      this.#options.replyBudget.open(this).add(length);
    }
  }

  #sendLong(reply: Reply, body: Reply['body']): void {
    if (!isPieces(body)) throw new TypeError('An endpoint that sends events needs `fast: false`');
    // The pieces may be made from the request's body, so keep it until the last one.
    if (!this.#isCancelled) {
      void this.#sendPieces(reply, body);
      return;
    }
    this.#dropBody();
    dropPieces(body);
  }

  /** Sends a reply that is produced while it is sent. Never rejects. */
  async #sendPieces(reply: Reply, body: Pieces): Promise<void> {
    const connection = this.#connection;
    const pieces = takenPieces(body, this, this.#options.replyBudget);
    try {
      let step = await pieces.next();
      if (this.#isCancelled) return;
      const { head, isLast } = this.#begin(reply, undefined);
      const chunked = isChunked({ contentLength: undefined, headers: reply.headers });
      let before = head;
      for (; step.done !== true; step = await pieces.next()) {
        connection.writePiece(before, step.value, chunked);
        before = '';
      }
      const end = before + (chunked ? '0\r\n\r\n' : '');
      // The client may have closed its half meanwhile.
      connection.endPieces(end, isLast || connection.isLast, () => this.#recordReply(reply.status, head));
    } catch (error) {
      if (this.#replied) connection.cut();
      else this.#fail(error);
    } finally {
      this.#dropBody();
      void pieces.return();
    }
  }

  /** Starts the reply: returns its head, and whether the connection closes after it. */
  #begin({ status, type, headers }: Reply, contentLength: number | undefined) {
    const closes = this.#options.isDraining() || this.#connection.isLast;
    const parts = {
      status,
      id: this.id,
      contentType: type,
      contentLength,
      added: this.#added,
      headers,
      closes,
    };
    const head = this.#options.heads.head(parts);
    this.#replied = true;
    return { head, isLast: closes || headers?.connection === 'close' };
  }

  #recordReply(status: number, head: string): void {
    this.#close();
    this.#duration = performance.now() - this.#began;
    this.#status = status;
    this.#head = head;
    this.#span?.end(status);
    this.#route.record?.(this.#request.method, status, this.#duration, this);
  }

  exchange(): RecordedExchange {
    const head = this.#head;
    const { method, headers, url, contentType } = this.#request;
    return {
      id: this.id,
      client: this.client,
      endedAt: Date.now(),
      duration: this.#duration,
      method,
      scheme: this.scheme,
      host: this.host,
      target: url,
      requestHeaders: headers,
      contentType,
      caller: this.caller?.name,
      status: this.#status,
      responseHeaders: () => parseReplyHead(head),
    };
  }

  #fail(error: unknown): void {
    const { id, log, method, headers } = this;
    try {
      this.#send(refusal(this.#options.errors, error, { id, log, method, headers, url: this.#request.url }));
    } catch (cause) {
      // No caller could handle this error.
      log.error({ ...requestFields(this), err: cause }, 'refusal failed, connection cut');
      this.#dropBody();
      this.#connection.cut();
    }
  }

  /** Frees the body once the endpoint has answered or is not called. */
  #dropBody(): void {
    if (this.#bodyHeld === 0) return;
    this.#options.bodyBudget.release(this.#bodyHeld);
    this.#bodyHeld = 0;
    this.#chunk = NO_BODY;
  }

  /** Calls the listeners once: a stream may still be passed in after the client has disconnected. */
  #close(): void {
    const onClose = this.#onClose;
    this.#onClose = undefined;
    onClose?.();
  }
}

/** Parses the headers of a reply's head, without Date and the fields after it, which Node adds. */
function parseReplyHead(head: string): Readonly<Record<string, string>> {
  const [, ...lines] = head.slice(0, head.indexOf('\r\nDate: ')).split('\r\n');
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(': ');
      return [line.slice(0, colon), line.slice(colon + 2)];
    }),
  );
}
