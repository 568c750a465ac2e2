import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import type { Agent as HttpsAgent } from 'node:https';
import { guardedLookup, isPrivateHost, PrivateAddressError } from './guarded-lookup.ts';
import type { Network } from './network.ts';
import { replyExcerpt } from './reply-excerpt.ts';

/** A request to send. */
export interface Post {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

/** The used parts of a reply; the rest of its body is discarded. */
export interface PostReply {
  readonly status: number;
  readonly retryAfter: string | undefined;
  /** The first kilobyte of its body; never rejects. */
  readonly excerpt: Promise<string>;
}

/** Maximum size of a reply, which is drained so that the connection can be reused; in bytes. */
const MAX_REPLY = 64 * 1024;
/** Maximum time for draining a reply, in milliseconds: the timeout of the attempt no longer applies by then. */
const MAX_REPLY_TIME = 5_000;

/** Sends POST requests over keep-alive connections; redirects are not followed. */
export interface Poster extends Disposable {
  /** Rejects when there is no reply. */
  post(post: Post): Promise<PostReply>;
}

export interface PosterOptions {
  readonly network: Network;
  readonly allowPrivate: boolean;
  /** Timeout for the body of a reply, in milliseconds; default 5,000. */
  readonly replyTime?: number;
}

/** Called by the first URL that needs it: TLS takes 4 MB, and most services forward nothing. */
const loadHttps = () => process.getBuiltinModule('node:https');

/** Creates a poster, which refuses private addresses unless they are allowed. */
export function createPoster({ network, allowPrivate, replyTime = MAX_REPLY_TIME }: PosterOptions): Poster {
  const http = new HttpAgent({ keepAlive: true });
  let https: HttpsAgent | undefined;
  const lookup = guardedLookup(network.resolver, allowPrivate);
  return {
    async post({ url, headers, body, signal }) {
      if (!allowPrivate && isPrivateHost(url.hostname)) throw new PrivateAddressError(url.hostname);
      network.admit(url.host);
      const secure = url.protocol === 'https:';
      if (secure) https ??= new (loadHttps().Agent)({ keepAlive: true });
      const { promise, resolve, reject } = Promise.withResolvers<PostReply>();
      const request = (secure ? loadHttps().request : httpRequest)(url, {
        method: 'POST',
        headers: { ...headers, 'content-length': body.byteLength },
        agent: secure ? https : http,
        signal,
        lookup,
      });
      network.watch(url.host, request, secure ? 'secureConnect' : 'connect');
      request.on('response', (reply) => {
        const excerpt = replyExcerpt(reply);
        drain(reply, replyTime);
        resolve({ status: reply.statusCode ?? 0, retryAfter: reply.headers['retry-after'], excerpt });
      });
      request.on('error', reject);
      request.end(body);
      return promise;
    },
    [Symbol.dispose]() {
      http.destroy();
      https?.destroy();
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
  // Errors after the status line do not matter.
  reply.on('error', () => {});
}
