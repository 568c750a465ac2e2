import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { guardedLookup, refusePrivateHost } from './guarded-lookup.ts';

export interface Post {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

/** What matters of a reply; its body does not. */
export interface PostReply {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

/** A reply is read so that the connection can be used again, but no further than this, in bytes. */
const MAX_REPLY = 64 * 1024;
/** Nor for longer, in milliseconds: the attempt is over by then, and nobody else would let go of the connection. */
const MAX_REPLY_TIME = 5_000;

/** Sends POST requests over kept connections; redirects are not followed. */
export interface Poster extends Disposable {
  /** Rejects when no reply comes. */
  post(post: Post): Promise<PostReply>;
}

export interface PosterOptions {
  readonly allowPrivate: boolean;
  /** How long the body of a reply may take, in milliseconds; default 5,000. */
  readonly replyTime?: number;
}

export function createPoster({ allowPrivate, replyTime = MAX_REPLY_TIME }: PosterOptions): Poster {
  const http = new HttpAgent({ keepAlive: true });
  const https = new HttpsAgent({ keepAlive: true });
  return {
    async post({ url, headers, body, signal }) {
      if (!allowPrivate) refusePrivateHost(url.hostname);
      const secure = url.protocol === 'https:';
      const { promise, resolve, reject } = Promise.withResolvers<PostReply>();
      const request = (secure ? httpsRequest : httpRequest)(url, {
        method: 'POST',
        headers: { ...headers, 'content-length': body.byteLength },
        agent: secure ? https : http,
        signal,
        ...(!allowPrivate && { lookup: guardedLookup }),
      });
      request.on('response', (reply) => {
        drain(reply, replyTime);
        resolve({ status: reply.statusCode ?? 0, retryAfter: reply.headers['retry-after'] });
      });
      request.on('error', reject);
      request.end(body);
      return promise;
    },
    [Symbol.dispose]() {
      http.destroy();
      https.destroy();
    },
  };
}

function drain(reply: IncomingMessage, time: number): void {
  const timer = setTimeout(() => reply.destroy(), time).unref();
  reply.on('close', () => clearTimeout(timer));
  let read = 0;
  reply.on('data', (chunk: Buffer) => {
    read += chunk.length;
    if (read > MAX_REPLY) reply.destroy();
  });
  // What goes wrong behind the status line changes nothing.
  reply.on('error', () => {});
}
