import type { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import type { RequestContext } from '../endpoint.ts';
import { type FastifyRequestContext, findRequestContext } from '../fastify.ts';
import { bodyTooLarge, HttpProblem, reasonPhrase } from '../problem.ts';
import { type Arrival, type BodyBudget, type BodySender, bodyBudgetOf, busy } from './body-budget.ts';
import { GrowingBuffer } from './request-message.ts';

type Done = (error: Error | null, body?: Buffer) => void;

/**
 * Makes each endpoint of a scope receive its raw body, whatever its Content-Type, as one buffer that counts
 * towards a budget: the listener's, unless the scope has its own. Routes without an endpoint get no body.
 */
export function readRawBodies(app: FastifyInstance, budget = bodyBudgetOf(app)): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (request, payload, done: Done) => {
    const ctx = findRequestContext(request);
    if (ctx === undefined || ctx.takeStream(payload)) done(null);
    else new BodyReader(ctx, payload, budget, done).read();
  });
}

/** `receivedEncodedLength` is Fastify's count of bytes before a user's `preParsing` hook decoded them. */
type Payload = Readable & { readonly receivedEncodedLength?: number };

/** A body that is arriving in pieces. */
interface Begun {
  readonly arrival: Arrival;
  readonly pieces: GrowingBuffer;
}

/** Reads the body of one request. */
class BodyReader implements BodySender {
  readonly #ctx: FastifyRequestContext;
  readonly #payload: Payload;
  readonly #budget: BodyBudget;
  readonly #done: Done;
  readonly #limit: number;
  /** The Content-Length; NaN if there is none. */
  readonly #announced: number;
  /** Whether the body is read as sent, without a decoder. */
  readonly #isRaw: boolean;
  /** A body that arrived in one piece. */
  #whole: Buffer | undefined;
  #begun: Begun | undefined;
  #received = 0;

  constructor(ctx: FastifyRequestContext, payload: Payload, budget: BodyBudget, done: Done) {
    this.#ctx = ctx;
    this.#payload = payload;
    this.#budget = budget;
    this.#done = done;
    this.#limit = ctx.request.routeOptions.bodyLimit;
    this.#announced = Number(ctx.headers['content-length']);
    this.#isRaw = payload === ctx.request.raw;
  }

  get caller(): RequestContext['caller'] {
    return this.#ctx.caller;
  }

  get client(): string {
    return this.#ctx.client;
  }

  read(): void {
    if (this.#announced > this.#limit) {
      this.#done(bodyTooLarge());
      return;
    }
    this.#payload.on('data', this.#onData).on('end', this.#onEnd).on('error', this.#onError);
    this.#payload.resume();
  }

  refuse(problem: HttpProblem): void {
    this.#stop();
    // A decoder may still fail on the rest of the body.
    this.#payload.on('error', () => {});
    if (this.#begun !== undefined) this.#budget.close(this.#begun.arrival);
    this.#begun = undefined;
    this.#done(problem);
  }

  readonly #onData = (data: Buffer | string): void => {
    const piece = typeof data === 'string' ? Buffer.from(data) : data;
    this.#received += piece.length;
    try {
      const { receivedEncodedLength = 0 } = this.#payload;
      if (Math.max(this.#received, receivedEncodedLength) > this.#limit) throw bodyTooLarge();
      if (piece.length === this.#announced && this.#isRaw) this.#takeWhole(piece);
      else this.#append(piece);
    } catch (error) {
      this.refuse(error as HttpProblem);
    }
  };

  #takeWhole(body: Buffer): void {
    if (!this.#budget.take(body.length, this)) throw busy();
    this.#ctx.holdBody(() => this.#budget.release(body.length));
    this.#whole = body;
  }

  #append(piece: Buffer): void {
    const { arrival, pieces } = this.#begun ?? this.#begin();
    this.#budget.grow(arrival, pieces.sizeWith(piece.length), this.#received);
    pieces.append(piece);
  }

  #begin(): Begun {
    const arrival = this.#budget.open(this);
    const length = this.#isRaw && this.#announced > 0 ? this.#announced : this.#limit;
    this.#begun = { arrival, pieces: new GrowingBuffer(length) };
    this.#ctx.holdBody(() => this.#budget.close(arrival));
    return this.#begun;
  }

  readonly #onEnd = (): void => {
    this.#stop();
    if (this.#begun !== undefined) this.#budget.complete(this.#begun.arrival);
    const encoded = this.#payload.receivedEncodedLength || this.#received;
    if (!Number.isNaN(this.#announced) && encoded !== this.#announced) {
      // Node's parser enforces Content-Length; a decoder may not report how many bytes it read.
      this.refuse(new HttpProblem(400, 'BAD_REQUEST', reasonPhrase(400)));
    } else this.#done(null, this.#whole ?? this.#begun?.pieces.take() ?? Buffer.alloc(0));
  };

  readonly #onError = (cause: Error): void => {
    this.refuse(new HttpProblem(400, 'BAD_REQUEST', reasonPhrase(400), { cause }));
  };

  #stop(): void {
    this.#payload.off('data', this.#onData).off('end', this.#onEnd).off('error', this.#onError);
  }
}
