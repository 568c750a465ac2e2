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

/** Sends POST requests over kept connections; redirects are not followed. */
export interface Poster extends Disposable {
  /** Rejects when no reply comes. */
  post(post: Post): Promise<PostReply>;
}

export function createPoster({ allowPrivate }: { readonly allowPrivate: boolean }): Poster {
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
        drain(reply);
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

function drain(reply: IncomingMessage): void {
  let read = 0;
  reply.on('data', (chunk: Buffer) => {
    read += chunk.length;
    if (read > MAX_REPLY) reply.destroy();
  });
  // What goes wrong behind the status line changes nothing.
  reply.on('error', () => {});
}
