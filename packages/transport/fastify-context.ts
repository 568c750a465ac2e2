import type { Socket } from 'node:net';
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify';
import type { MaybePromise } from '../../src/core/maybe-promise.ts';
import type { KnownCaller } from './caller.ts';
import type { Endpoint, Reply, RequestContext } from './endpoint.ts';
import { isPieces, readablePieces } from './reply/reply-pieces.ts';

const NO_BODY = Buffer.alloc(0);

/** The context of a request that Fastify handles. */
export class FastifyRequestContext implements RequestContext {
  readonly request: FastifyRequest;
  readonly contentType: string | null;
  caller: KnownCaller | undefined;
  readonly #reply: FastifyReply;
  readonly #param: string | undefined;
  #releaseBody: (() => void) | undefined;
  #isHandled = false;

  /** `param` is the name of the route's last parameter; undefined if the route does not end with one. */
  constructor(request: FastifyRequest, reply: FastifyReply, param: string | undefined) {
    this.request = request;
    this.contentType = request.headers['content-type'] ?? null;
    this.#reply = reply;
    this.#param = param;
  }

  get id(): string {
    return this.request.id;
  }

  get method(): string {
    return this.request.method;
  }

  get target(): string {
    return this.request.originalUrl;
  }

  get client(): string {
    return this.request.ip ?? '';
  }

  get host(): string {
    return this.request.host;
  }

  get headers(): RequestContext['headers'] {
    return this.request.headers;
  }

  get param(): string {
    if (this.#param === undefined) return '';
    return (this.request.params as Readonly<Record<string, string>>)[this.#param] ?? '';
  }

  get query(): RequestContext['query'] {
    return this.request.query as RequestContext['query'];
  }

  get body(): Buffer {
    const { body } = this.request;
    return Buffer.isBuffer(body) ? body : NO_BODY;
  }

  /**
   * Calls `release` once the body can be freed: the reply is sent or the client has disconnected, and no
   * endpoint is using it.
   */
  holdBody(release: () => void): void {
    this.#releaseBody = release;
    this.onClose(() => {
      if (!this.#isHandled) this.#release();
    });
  }

  /** Frees the body before the reply ends. */
  dropBody(): void {
    this.request.body = undefined;
    this.#release();
  }

  /** Runs an endpoint. Throws or rejects like `Endpoint.handle`. */
  handle(endpoint: Endpoint): MaybePromise<Reply> {
    if (this.#releaseBody === undefined) return endpoint.handle(this);
    const onAnswer = () => {
      this.#isHandled = false;
      if (this.#reply.raw.destroyed) this.#release();
    };
    this.#isHandled = true;
    try {
      const answer = endpoint.handle(this);
      if (answer instanceof Promise) return answer.finally(onAnswer);
      onAnswer();
      return answer;
    } catch (error) {
      onAnswer();
      throw error;
    }
  }

  #release(): void {
    const release = this.#releaseBody;
    this.#releaseBody = undefined;
    release?.();
  }

  get log(): FastifyBaseLogger {
    return this.request.log;
  }

  addHeaders(headers: Readonly<Record<string, string>>): void {
    addFields(this.#reply, headers);
  }

  onClose(listener: () => void): void {
    const { raw } = this.#reply;
    // The client may have disconnected while earlier hooks ran.
    if (raw.destroyed) listener();
    else raw.once('close', listener);
  }

  onAbort(listener: () => void): () => void {
    return onClientAbort(this.request.raw.socket, (close) => this.onClose(close), listener);
  }
}

/** Keeps Fastify from adding a charset: the content type is sent exactly as the door wrote it. */
function asIs(payload: unknown): string {
  return payload as string;
}

/** Sends an endpoint's reply through Fastify. */
export function send(reply: FastifyReply, { status, type, body, headers }: Reply): FastifyReply {
  if (headers !== undefined) addFields(reply, headers);
  if (type !== '') reply.type(type);
  // A 304 has no body, and Content-Length would describe the reply to an unconditional request.
  if (status === 304) return reply.code(status).send();
  return reply
    .code(status)
    .serializer(asIs)
    .send(isPieces(body) ? readablePieces(body, reply) : body);
}

/** Adds headers to a Fastify reply; Vary is merged with the existing value. */
export function addFields(reply: FastifyReply, headers: Readonly<Record<string, string>>): FastifyReply {
  return reply.headers(withVary(reply.getHeader('vary'), headers));
}

/** Merges the Vary of `headers` with an earlier Vary value. */
export function withVary(
  before: unknown,
  headers: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  if (headers.vary === undefined || before === undefined) return headers;
  return { ...headers, vary: joinVary(String(before), headers.vary) };
}

/** Joins two Vary lists without duplicates, ignoring case (RFC 9110 12.5.5). */
function joinVary(before: string, more: string): string {
  const names = new Map<string, string>();
  for (const part of `${before},${more}`.split(',')) {
    const name = part.trim();
    const key = name.toLowerCase();
    if (name !== '' && !names.has(key)) names.set(key, name);
  }
  return names.has('*') ? '*' : [...names.values()].join(', ');
}

/**
 * How long a request continues after its client has closed its half of the connection, in milliseconds. Most
 * such clients are gone, but the system keeps acknowledging data until the peer rejects it, so nothing else
 * reveals that.
 */
const GRACE = 1_000;

/**
 * Listeners for the end of a client's half, by socket: one `end` handler per socket, however many requests it
 * has.
 */
const waiting = new WeakMap<Socket, Set<() => void>>();

/**
 * Calls a listener once a client has left: when `onClose` fires, or `GRACE` after the client closes its half.
 * Returns a function that removes the listener.
 */
export function onClientAbort(
  socket: Socket,
  onClose: (listener: () => void) => void,
  listener: () => void,
): () => void {
  const listeners = listenersOf(socket);
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  const cancel = () => {
    isOver = true;
    clearTimeout(timer);
    listeners.delete(onEnd);
  };
  const fire = () => {
    if (isOver) return;
    cancel();
    listener();
  };
  const onEnd = () => {
    timer = setTimeout(fire, GRACE);
  };
  if (socket.readableEnded) onEnd();
  else listeners.add(onEnd);
  onClose(fire);
  return cancel;
}

function listenersOf(socket: Socket): Set<() => void> {
  const known = waiting.get(socket);
  if (known !== undefined) return known;
  const listeners = new Set<() => void>();
  waiting.set(socket, listeners);
  socket.once('end', () => {
    for (const listener of listeners) listener();
  });
  return listeners;
}
