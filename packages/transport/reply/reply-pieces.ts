import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { MaybePromise } from '../../../src/core/maybe-promise.ts';
import type { Reply } from '../endpoint.ts';
import { requestFields } from '../request-events.ts';
import { LARGE_REPLY, ReplyBudget, type SentReply, takenBy } from './reply-budget.ts';

/** A reply that is made while it is sent: each piece is text or bytes of about `PIECE_BYTES`. */
export type Pieces = AsyncIterable<string | Uint8Array>;

/** What a piece should hold, in bytes. */
export const PIECE_BYTES = 64 * 1024;

/** The pieces that a reply may send before others have their turn: each turn of the event loop has its price. */
export const TURN_PIECES = 4;

/** A reply that is sent in pieces. */
export interface PiecewiseReply extends SentReply {
  /** Returns once the system has taken all that was written, or the client is gone. */
  whenTaken(): MaybePromise<void>;
  /** The source has failed behind the first piece: nothing can be said to the client any more. */
  onFailure(error: unknown): void;
}

export function isPieces(body: Reply['body']): body is Pieces {
  return typeof body === 'object' && !Buffer.isBuffer(body);
}

/**
 * The pieces of a reply as bytes. The next one is asked of the source once the system has taken the one before and there
 * is room for it, so a reply holds one piece at most; after `TURN_PIECES` other replies have their turns. Throws
 * HttpProblem in the place of the first piece when there is no room for it. Ends early when the client leaves.
 */
export async function* takenPieces(
  pieces: Pieces,
  reply: PiecewiseReply,
  budget: ReplyBudget,
): AsyncGenerator<Buffer, void> {
  const unread = budget.open(reply);
  const source = pieces[Symbol.asyncIterator]();
  let hasBegun = false;
  /** The pieces of its turn so far. */
  let sent = 0;
  try {
    unread.reserve(PIECE_BYTES);
    for (;;) {
      const { value, done } = await source.next();
      if (done === true || unread.isClosed) return;
      const bytes = typeof value === 'string' ? Buffer.from(value) : asBuffer(value);
      // Nothing would end a chunked reply.
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

/** Ends a source of which nothing more is wanted. */
export function dropPieces(
  pieces: Pieces,
  source: AsyncIterator<unknown> = pieces[Symbol.asyncIterator](),
): void {
  // One that was not begun would not be closed by its iterator.
  if (pieces instanceof Readable) pieces.destroy();
  else Promise.resolve(source.return?.()).catch(() => {});
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** What is logged when a reply cannot be completed. */
export const SOURCE_FAILED = 'reply cut: its source failed';

const BUDGET = Symbol('portico.replyBudget');
/** The streams that are counted already. */
const COUNTED = new WeakSet<object>();

/** What bounds the unread replies of an instance of Fastify's, or of the one around it; a new one where nothing does. */
export function replyBudgetOf(app: FastifyInstance): ReplyBudget {
  const known = (app as { [BUDGET]?: ReplyBudget })[BUDGET];
  if (known !== undefined) return known;
  const budget = new ReplyBudget();
  app.decorate(BUDGET, budget);
  return budget;
}

/** Counts the replies that an instance of Fastify's sends, until their clients have them. */
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
    // While a client does not read it, Node would hold a text twice.
    return typeof payload === 'string' ? Buffer.from(payload) : payload;
  }
  const { socket } = reply.raw;
  // Behind bytes that the client has not read even a small reply waits.
  if (socket === null || socket.writableLength > 0) budget.open(sent).add(length);
  return payload;
}

/** The pieces of a reply as Fastify sends them. */
export function readablePieces(pieces: Pieces, reply: FastifyReply): Readable {
  const budget = replyBudgetOf(reply.server);
  // It reads one piece ahead, and the next one is not made before the system has taken that.
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

/** Returns once the system has taken what was written of a reply of Node's, or the client is gone. */
function whenTaken(raw: ServerResponse, socket: IncomingMessage['socket']): MaybePromise<void> {
  // An injected request has no real socket.
  if (raw.destroyed || raw.writableLength === 0 || !(socket instanceof Socket)) return undefined;
  return new Promise((resolve) => {
    const done = () => {
      raw.off('close', done);
      resolve();
    };
    raw.once('close', done);
    const ask = () => socket.write('', done);
    // A reply behind another one has no socket yet, and gives it what was written when it gets it.
    if (raw.socket === null) raw.once('socket', () => setImmediate(ask));
    else ask();
  });
}
