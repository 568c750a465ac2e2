import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { LARGE_REPLY, type ReplyBudget, type SentReply, takenBy } from '../body/reply-budget.ts';

/** What a stream holds for a client that does not read, about, in bytes. */
const STREAM_BYTES = 128 * 1024;
const BUDGET = Symbol('portico.replyBudget');

/** What bounds the unread replies of an instance, or of the one around it. */
export function replyBudgetOf(app: FastifyInstance): ReplyBudget | undefined {
  return (app as { [BUDGET]?: ReplyBudget })[BUDGET];
}

/** Counts the replies that Fastify sends, until their clients have them. */
export function limitUnread(app: FastifyInstance, budget: ReplyBudget): void {
  app.decorate(BUDGET, budget);
  app.addHook('onSend', (_request, { raw }, payload, done) => {
    const sent: SentReply = {
      onClose: (listener) => raw.once('close', listener),
      taken: () => takenBy(raw.socket),
      cut: () => raw.destroy(),
    };
    try {
      if (payload instanceof Readable) budget.take(STREAM_BYTES, sent);
      else if (typeof payload === 'string' && payload.length >= LARGE_REPLY) {
        // While a client does not read it, Node would hold a text twice.
        const bytes = Buffer.from(payload);
        budget.take(bytes.length, sent);
        return done(null, bytes);
      } else if (Buffer.isBuffer(payload)) budget.take(payload.length, sent);
    } catch (error) {
      return done(error as Error);
    }
    done();
  });
}
