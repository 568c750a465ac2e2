import type { Socket } from 'node:net';
import { ClientAbort, resultText } from '@portico/graphql-plans';
import { type BodyBudget, parseJsonText, type RequestContext, toProblem } from '@portico/transport';
import type { ExecutionResult, GraphQLError } from 'graphql';
import { CloseCode, type WebSocket as ProtocolSocket } from 'graphql-ws';
import type { WebSocket } from 'ws';
import { requestFields } from '../core/trace.ts';
import { type OperationSlots, refusal } from './operation-slots.ts';
import { InboundQueue, type OutboundQueue } from './socket-queues.ts';

/** Message types that a client may send; graphql-ws would treat the other types as an internal failure. */
const CLIENT_TYPES: ReadonlySet<unknown> = new Set([
  'connection_init',
  'ping',
  'pong',
  'subscribe',
  'complete',
]);
/** Close code for binary messages (RFC 6455 7.4.1). */
const UNSUPPORTED_DATA = 1003;
const GOING_AWAY = 1001;

/** An operation in progress. */
interface Held {
  /** The size of its message, in bytes. */
  readonly bytes: number;
  readonly recipient: ClientAbort;
}

/** The options of a GraphqlSocket. */
interface GraphqlSocketOptions {
  readonly client: WebSocket;
  /** The request that was upgraded to the WebSocket. */
  readonly ctx: RequestContext;
  readonly outbound: OutboundQueue;
  readonly slots: OperationSlots;
  /** The WebSocket's underlying connection. */
  readonly connection: Socket;
  /** Bounds the memory of unread messages. */
  readonly budget: BodyBudget;
}

/** A client's WebSocket, as driven by graphql-ws, with its operations in progress. */
export class GraphqlSocket implements ProtocolSocket {
  readonly protocol: string;
  /** The request that was upgraded to the WebSocket. */
  readonly ctx: RequestContext;
  readonly #client: WebSocket;
  readonly #outbound: OutboundQueue;
  readonly #slots: OperationSlots;
  readonly #inbound: InboundQueue;
  /** The operations in progress, by the payload object that graphql-ws passes around. */
  readonly #held = new Map<object, Held>();
  readonly #streams = new Set<SubscriptionStream>();
  /** The size of the message being handled, in bytes. */
  #messageBytes = 0;
  /** Sends a message instead of the next text of graphql-ws. */
  #instead: (() => Promise<void> | void) | undefined;
  #isEnding = false;

  constructor({ client, ctx, outbound, slots, connection, budget }: GraphqlSocketOptions) {
    this.protocol = client.protocol;
    this.ctx = ctx;
    this.#client = client;
    this.#outbound = outbound;
    this.#slots = slots;
    this.#inbound = new InboundQueue({ client, socket: connection, outbound, budget, ctx });
  }

  onMessage(take: (data: string) => Promise<void>): void {
    this.#inbound.start((data, isBinary) => {
      if (isBinary) this.close(UNSUPPORTED_DATA, 'Messages must be text');
      else this.#read(data, take);
    });
  }

  #read(data: Buffer, take: (data: string) => Promise<void>): void {
    let message: unknown;
    try {
      message = parseJsonText(String(data));
    } catch (error) {
      this.close(CloseCode.BadRequest, toProblem(error).message);
      return;
    }
    if (!CLIENT_TYPES.has(Object(message).type)) {
      this.close(CloseCode.BadRequest, 'The type of the message is unknown');
      return;
    }
    this.#messageBytes = data.length;
    // graphql-ws also accepts a parsed message; only our parser is strict.
    take(message as string).catch((error: unknown) => {
      this.ctx.log.error({ ...requestFields(this.ctx), err: error }, 'WebSocket failed');
      this.close(CloseCode.InternalServerError, 'Internal server error');
    });
  }

  /** Sends a text of graphql-ws, or the result that replaces it. */
  send(text: string): Promise<void> | void {
    const instead = this.#instead;
    this.#instead = undefined;
    return instead === undefined ? this.#outbound.send(text) : instead();
  }

  close(code: number, reason: string): void {
    this.#client.close(code, reason);
  }

  /**
   * Counts an operation until `finish`; returns the refusal if it must not begin. Call it while its message
   * is being handled.
   */
  begin(payload: object): GraphQLError | undefined {
    if (this.#isEnding) return refusal('STOPPING', 'The service is stopping');
    const bytes = this.#messageBytes;
    const refused = this.#slots.take(this.#held.size, bytes);
    if (refused === undefined) this.#held.set(payload, { bytes, recipient: new ClientAbort() });
    return refused;
  }

  /** The client signal of an operation in progress. */
  recipientOf(payload: object): ClientAbort {
    return this.#held.get(payload)?.recipient ?? new ClientAbort();
  }

  /** Stops counting an operation whose last message is about to be sent. */
  finish(payload: object): void {
    const held = this.#held.get(payload);
    if (held === undefined) return;
    this.#held.delete(payload);
    this.#release(held);
    if (this.#isEnding) this.#closeWhenDone();
  }

  /** Makes a stop end the stream, until `forget`. */
  watch(stream: SubscriptionStream): void {
    this.#streams.add(stream);
    if (this.#isEnding) stream.end();
  }

  forget(stream: SubscriptionStream): void {
    this.#streams.delete(stream);
  }

  /**
   * A result as the payload of a message. graphql-ws would stringify lists that are text already, so its
   * message is replaced: it sends one right after calling the payload's `toJSON`.
   */
  payload(id: string, result: ExecutionResult, isEvent: boolean): { toJSON(): null } {
    return {
      toJSON: () => {
        this.#instead = () => {
          const text = nextMessage(id, resultText(result));
          if (isEvent) return this.#outbound.sendEvent(text);
          try {
            return this.#outbound.sendResult(text);
          } catch (error) {
            const { code, message } = toProblem(error);
            const busy = JSON.stringify({ errors: [{ message, extensions: { code } }] });
            return this.#outbound.send(nextMessage(id, busy));
          }
        };
        return null;
      },
    };
  }

  /** Completes all subscriptions, and closes the WebSocket once no operation is in progress. */
  end(): void {
    this.#isEnding = true;
    for (const stream of this.#streams) stream.end();
    this.#closeWhenDone();
  }

  /** Ends all operations because the connection is closed. */
  release(): void {
    for (const stream of this.#streams) stream.end();
    for (const held of this.#held.values()) this.#release(held);
    this.#held.clear();
  }

  #release({ bytes, recipient }: Held): void {
    this.#slots.release(bytes);
    recipient.leave();
  }

  #closeWhenDone(): void {
    if (this.#held.size > 0) return;
    // Let the last message go out first.
    setImmediate(() => this.close(GOING_AWAY, 'The service is stopping'));
  }
}

function nextMessage(id: string, result: string | Buffer): string | Buffer {
  const head = `{"id":${JSON.stringify(id)},"type":"next","payload":`;
  return typeof result === 'string' ? `${head}${result}}` : Buffer.concat([Buffer.from(head), result, TAIL]);
}

const TAIL = Buffer.from('}');

type Next = IteratorResult<ExecutionResult, undefined>;

const DONE: Next = { value: undefined, done: true };

/** The results of a subscription, until the source, the client or a stop ends it. */
export class SubscriptionStream implements AsyncIterableIterator<ExecutionResult, undefined> {
  readonly #source: AsyncIterator<ExecutionResult>;
  #waiting: PromiseWithResolvers<Next> | undefined;
  readonly #onEnd: () => void;
  #hasEnded = false;

  /** `onEnd` is called once. */
  constructor(source: AsyncIterable<ExecutionResult>, onEnd: () => void) {
    this.#source = source[Symbol.asyncIterator]();
    this.#onEnd = onEnd;
  }

  next(): Promise<Next> {
    if (this.#hasEnded) return Promise.resolve(DONE);
    const waiting = Promise.withResolvers<Next>();
    this.#waiting = waiting;
    this.#source.next().then(
      (next) => {
        if (next.done === true) this.end();
        else waiting.resolve(next);
      },
      (error: unknown) => {
        waiting.reject(error);
        this.end();
      },
    );
    return waiting.promise;
  }

  return(): Promise<Next> {
    this.end();
    return Promise.resolve(DONE);
  }

  /** Ends the subscription without waiting for the source, which may never finish its current step. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#onEnd();
    this.#waiting?.resolve(DONE);
    Promise.resolve(this.#source.return?.()).catch(() => {});
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
