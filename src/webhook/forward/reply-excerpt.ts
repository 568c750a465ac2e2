import type { IncomingMessage } from 'node:http';
import { MAX_ANSWER } from '../../inbox/attempts.ts';

/** Maximum wait for the excerpt once the status is there, in milliseconds: the outcome waits for it. */
const MAX_WAIT = 500;

/** The first kilobyte of a reply as text; what has come when the reply ends, fails or takes too long. Never rejects. */
export function replyExcerpt(reply: IncomingMessage): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const chunks: Buffer[] = [];
  let size = 0;
  const finish = () => {
    clearTimeout(timer);
    reply.off('data', read);
    // Without what is left of a character that was cut.
    resolve(new TextDecoder().decode(Buffer.concat(chunks).subarray(0, MAX_ANSWER), { stream: true }));
  };
  const read = (chunk: Buffer) => {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= MAX_ANSWER) finish();
  };
  const timer = setTimeout(finish, MAX_WAIT);
  reply.on('data', read);
  reply.once('close', finish);
  return promise;
}
