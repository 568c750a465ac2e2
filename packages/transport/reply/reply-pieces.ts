import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { MaybePromise } from '../../../src/core/maybe-promise.ts';
import type { Reply } from '../endpoint.ts';
import { requestFields } from '../request-events.ts';
import { LARGE_REPLY, ReplyBudget, type SentReply, takenBy } from './reply-budget.ts';

/** A reply body that is produced while it is sent: each piece is text or bytes of about `PIECE_BYTES`. */
export type Pieces = AsyncIterable<string | Uint8Array>;

/** Target size of a piece, in bytes. */
export const PIECE_BYTES = 64 * 1024;

/**
 * Number of pieces that a reply sends before other replies get a turn: each turn of the event loop has a
 * cost.
 */
export const TURN_PIECES = 4;

/** A reply that is sent in pieces. */
export interface PiecewiseReply extends SentReply {
  /** Returns once the system has taken all written bytes, or the client has disconnected. */
  whenTaken(): MaybePromise<void>;
  /** Called if the source fails after the first piece, when the client can no longer be told. */
  onFailure(error: unknown): void;
}

/** The body of a reply to HEAD if the reply to GET would be in pieces. */
export const NO_PIECES: Pieces = { async *[Symbol.asyncIterator]() {} };

export function isPieces(body: Reply['body']): body is Pieces {
  return typeof body === 'object' && Symbol.asyncIterator in body;
}

/**
 * Yields the pieces of a reply as bytes. The source is asked for the next one once the system has taken the
 * previous one and the budget has capacity, so a reply holds one piece at most; after `TURN_PIECES`, other
 * replies get their turns. Throws HttpProblem before the first piece if it does not fit. Ends early
 * if the client disconnects.
 */
export async function* takenPieces(
  pieces: Pieces,
  reply: PiecewiseReply,
  budget: ReplyBudget,
): AsyncGenerator<Buffer, void> {
  const unread = budget.open(reply);
  const source = pieces[Symbol.asyncIterator]();
  let hasBegun = false;
  /** Pieces sent in this turn. */
  let sent = 0;
  try {
    unread.reserve(PIECE_BYTES);
    for (;;) {
      const { value, done } = await source.next();
      if (done === true || unread.isClosed) return;
      const bytes = typeof value === 'string' ? Buffer.from(value) : asBuffer(value);
      // An empty chunk would end a chunked reply.
      if (bytes.length > 0) {
        unread.hold(bytes.length);
        yield bytes;
        hasBegun = true;
        const taken = reply.whenTaken();
        if (taken !== undefined) {
          await taken;
          sent = TURN_PIECES;
        }
      }
      unread.hold(0);
      if (++sent >= TURN_PIECES) {
        await budget.turns.next(0);
        sent = 0;
      }
      await unread.whenRoom(PIECE_BYTES);
      if (unread.isClosed) return;
    }
  } catch (error) {
    if (hasBegun) reply.onFailure(error);
    throw error;
  } finally {
    unread.close();
    dropPieces(pieces, source);
  }
}

/** Ends a source whose remaining pieces are not needed. */
export function dropPieces(
  pieces: Pieces,
  source: AsyncIterator<unknown> = pieces[Symbol.asyncIterator](),
): void {
  // The iterator of a Readable that was not started would not destroy it.
  if (pieces instanceof Readable) pieces.destroy();
  else Promise.resolve(source.return?.()).catch(() => {});
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The log message for a reply that cannot be completed. */
export const SOURCE_FAILED = 'reply cut: its source failed';

const BUDGET = Symbol('portico.replyBudget');
/** Streams that already count towards a budget. */
const COUNTED = new WeakSet<object>();

/** The budget for unread replies of a Fastify instance or its enclosing one; creates one if there is none. */
export function replyBudgetOf(app: FastifyInstance): ReplyBudget {
  const known = (app as { [BUDGET]?: ReplyBudget })[BUDGET];
  if (known !== undefined) return known;
  const budget = new ReplyBudget();
  app.decorate(BUDGET, budget);
  return budget;
}

/** Counts the replies of a Fastify instance until their clients have read them. */
export function limitUnread(app: FastifyInstance, budget: ReplyBudget): void {
  app.decorate(BUDGET, budget);
  app.addHook('onSend', (_request, reply, payload, done) => {
    let counted: unknown;
    try {
      counted = countedPayload(payload, reply, budget);
    } catch (error) {
      return done(error as Error);
    }
    done(null, counted);
  });
}

function countedPayload(payload: unknown, reply: FastifyReply, budget: ReplyBudget): unknown {
  if (payload instanceof Readable) return COUNTED.has(payload) ? payload : readablePieces(payload, reply);
  if (typeof payload !== 'string' && !Buffer.isBuffer(payload)) return payload;
  const length = Buffer.byteLength(payload);
  const sent = fastifyReply(reply);
  if (length >= LARGE_REPLY) {
    budget.take(length, sent);
    // Node would hold a string twice while the client does not read it.
    return typeof payload === 'string' ? Buffer.from(payload) : payload;
  }
  const { socket } = reply.raw;
  // Behind bytes that the client has not read, even a small reply waits.
  if (socket === null || socket.writableLength > 0) budget.open(sent).add(length);
  return payload;
}

/** The pieces of a reply as a stream for Fastify. */
export function readablePieces(pieces: Pieces, reply: FastifyReply): Readable {
  const budget = replyBudgetOf(reply.server);
  // The stream reads one piece ahead, but the next one is not produced before the system has taken that.
  const readable = Readable.from(takenPieces(pieces, fastifyReply(reply), budget), {
    objectMode: false,
    highWaterMark: 1,
  });
  COUNTED.add(readable);
  return readable;
}

function fastifyReply({ raw, request, log }: FastifyReply): PiecewiseReply {
  const { socket } = request.raw;
  return {
    onClose: (listener) => raw.once('close', listener),
    taken: () => takenBy(socket),
    cut: () => raw.destroy(),
    whenTaken: () => whenTaken(raw, socket),
    onFailure: (error) => log.warn({ ...requestFields(request), err: error }, SOURCE_FAILED),
  };
}

/** Returns once the system has taken the written bytes of a Node reply, or the client has disconnected. */
function whenTaken(raw: ServerResponse, socket: IncomingMessage['socket']): MaybePromise<void> {
  // Injected requests have no real socket.
  if (raw.destroyed || raw.writableLength === 0 || !(socket instanceof Socket)) return undefined;
  return new Promise((resolve) => {
    const done = () => {
      raw.off('close', done);
      resolve();
    };
    raw.once('close', done);
    const ask = () => socket.write('', done);
    // A pipelined reply gets its socket later, and then writes what it has buffered.
    if (raw.socket === null) raw.once('socket', () => setImmediate(ask));
    else ask();
  });
}
