import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify';
import type { MaybePromise } from '../core/maybe-promise.ts';
import type { KnownCaller } from './access/caller.ts';
import { onDeparture } from './client-departure.ts';
import type { Endpoint, Exchange, Reply } from './endpoint.ts';
import { addFields } from './send-reply.ts';

const NO_BODY = Buffer.alloc(0);

/** A request that Fastify brought. */
export class FastifyExchange implements Exchange {
  readonly request: FastifyRequest;
  readonly contentType: string | null;
  caller: KnownCaller | undefined;
  readonly #reply: FastifyReply;
  readonly #param: string | undefined;
  #releaseBody: (() => void) | undefined;
  #isHandled = false;

  /** `param` is the name of the route's last parameter, if it ends with one. */
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

  get headers(): Exchange['headers'] {
    return this.request.headers;
  }

  get param(): string {
    if (this.#param === undefined) return '';
    return (this.request.params as Readonly<Record<string, string>>)[this.#param] ?? '';
  }

  get query(): Exchange['query'] {
    return this.request.query as Exchange['query'];
  }

  get body(): Buffer {
    const { body } = this.request;
    return Buffer.isBuffer(body) ? body : NO_BODY;
  }

  /** Calls `release` once the body is not held any more: the client is gone or answered, and no endpoint works on it. */
  holdBody(release: () => void): void {
    this.#releaseBody = release;
    this.onClose(() => {
      if (!this.#isHandled) this.#release();
    });
  }

  /** Lets go of the body before the reply ends. */
  dropBody(): void {
    this.request.body = undefined;
    this.#release();
  }

  /** Has an endpoint answer. Throws or rejects as `Endpoint.handle`. */
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
    // A hook before the endpoint may take longer than the client stays.
    if (raw.destroyed) listener();
    else raw.once('close', listener);
  }

  onLeave(listener: () => void): () => void {
    return onDeparture(this.request.raw.socket, (close) => this.onClose(close), listener);
  }
}
