import type { Socket } from 'node:net';
import { ClientAbort, resultText } from '@portico/graphql-plans';
import {
  type BodyBudget,
  parseJsonText,
  type RequestContext,
  requestFields,
  toProblem,
} from '@portico/transport';
import type { ExecutionResult, GraphQLError } from 'graphql';
import { CloseCode, type WebSocket as ProtocolSocket } from 'graphql-ws';
import type { WebSocket } from 'ws';
import { type OperationSlots, refusal } from './operation-slots.ts';
import { InboundQueue, type OutboundQueue } from './socket-queues.ts';

/** What a client may send; graphql-ws takes the others of the protocol for a failure of ours. */
const CLIENT_TYPES: ReadonlySet<unknown> = new Set([
  'connection_init',
  'ping',
  'pong',
  'subscribe',
  'complete',
]);
/** Text was expected (RFC 6455 7.4.1). */
const UNSUPPORTED_DATA = 1003;
const GOING_AWAY = 1001;

/** An operation in progress. */
interface Held {
  /** The size of its message. */
  readonly bytes: number;
  readonly recipient: ClientAbort;
}

/** What a client's WebSocket is made of. */
interface GraphqlSocketOptions {
  readonly client: WebSocket;
  /** The request that became the WebSocket. */
  readonly ctx: RequestContext;
  readonly outlet: OutboundQueue;
  readonly slots: OperationSlots;
  /** The connection below the WebSocket. */
  readonly connection: Socket;
  /** Bounds what clients have sent and nobody has read. */
  readonly budget: BodyBudget;
}

/** One client's WebSocket, as graphql-ws drives it, with the operations in progress on it. */
export class GraphqlSocket implements ProtocolSocket {
  readonly protocol: string;
  /** The request that became the WebSocket. */
  readonly ctx: RequestContext;
  readonly #client: WebSocket;
  readonly #outlet: OutboundQueue;
  readonly #slots: OperationSlots;
  readonly #inlet: InboundQueue;
  /** The operations in progress, by the payload that graphql-ws hands around. */
  readonly #held = new Map<object, Held>();
  readonly #streams = new Set<SubscriptionStream>();
  /** The size of the message that is being read, in bytes. */
  #messageBytes = 0;
  /** What goes out in the place of the next text of graphql-ws. */
  #instead: (() => Promise<void> | void) | undefined;
  #isEnding = false;

  constructor({ client, ctx, outlet, slots, connection, budget }: GraphqlSocketOptions) {
    this.protocol = client.protocol;
    this.ctx = ctx;
    this.#client = client;
    this.#outlet = outlet;
    this.#slots = slots;
    this.#inlet = new InboundQueue({ client, socket: connection, outlet, budget, ctx });
  }

  onMessage(take: (data: string) => Promise<void>): void {
    this.#inlet.start((data, isBinary) => {
      if (isBinary) this.close(UNSUPPORTED_DATA, 'Messages are text');
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
    // graphql-ws reads a parsed message as well, and only ours is read strictly.
    take(message as string).catch((error: unknown) => {
      this.ctx.log.error({ ...requestFields(this.ctx), err: error }, 'WebSocket failed');
      this.close(CloseCode.InternalServerError, 'Internal server error');
    });
  }

  /** Sends a text of graphql-ws, or the result that stands for it. */
  send(text: string): Promise<void> | void {
    const instead = this.#instead;
    this.#instead = undefined;
    return instead === undefined ? this.#outlet.send(text) : instead();
  }

  close(code: number, reason: string): void {
    this.#client.close(code, reason);
  }

  /** Counts an operation until `finish`; says why it cannot begin. Call it while its message is being read. */
  begin(payload: object): GraphQLError | undefined {
    if (this.#isEnding) return refusal('STOPPING', 'The service is stopping');
    const bytes = this.#messageBytes;
    const refused = this.#slots.take(this.#held.size, bytes);
    if (refused === undefined) this.#held.set(payload, { bytes, recipient: new ClientAbort() });
    return refused;
  }

  /** The client of an operation that has begun. */
  recipientOf(payload: object): ClientAbort {
    return this.#held.get(payload)?.recipient ?? new ClientAbort();
  }

  /** An operation has ended; its last message is about to be sent. */
  finish(payload: object): void {
    const held = this.#held.get(payload);
    if (held === undefined) return;
    this.#held.delete(payload);
    this.#release(held);
    if (this.#isEnding) this.#closeWhenDone();
  }

  /** Ends a stream at a stop, until it ends by itself. */
  watch(stream: SubscriptionStream): void {
    this.#streams.add(stream);
    if (this.#isEnding) stream.end();
  }

  forget(stream: SubscriptionStream): void {
    this.#streams.delete(stream);
  }

  /**
   * A result as the payload of a message. graphql-ws would make the text of lists again that are text already, so its
   * message is replaced: it sends one as soon as it has asked the payload for its JSON.
   */
  payload(id: string, result: ExecutionResult, isEvent: boolean): { toJSON(): null } {
    return {
      toJSON: () => {
        this.#instead = () => {
          const text = nextMessage(id, resultText(result));
          if (isEvent) return this.#outlet.sendEvent(text);
          try {
            return this.#outlet.sendResult(text);
          } catch (error) {
            const { code, message } = toProblem(error);
            const busy = JSON.stringify({ errors: [{ message, extensions: { code } }] });
            return this.#outlet.send(nextMessage(id, busy));
          }
        };
        return null;
      },
    };
  }

  /** Completes all subscriptions, and closes the WebSocket once nothing is in progress. */
  end(): void {
    this.#isEnding = true;
    for (const stream of this.#streams) stream.end();
    this.#closeWhenDone();
  }

  /** The connection is gone. */
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
    // The last message goes out first.
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

/** The results of a subscription until their source, the client or a stop ends them. */
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

  /** Does not wait for the source: that may be in the middle of something that takes forever. */
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
