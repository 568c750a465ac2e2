import { Agent as HttpAgent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { type AgentOptions, Agent as HttpsAgent, request as httpsRequest } from 'node:https';

/** The address of a webhook receiver. */
export interface Receiver {
  readonly url: URL;
  /** The Unix socket on which it listens, if any. */
  readonly socketPath?: string;
  /** The certificate that it must present, as PEM; its name is not compared. */
  readonly certificate?: string;
}

/** The answer of a receiver. */
export interface Reply {
  readonly status: number;
  readonly statusText: string;
  /** The receiver's id of the delivery; undefined if the reply has none. */
  readonly delivery: string | undefined;
  /** The first 64 KiB of the body. */
  readonly body: string;
  /** Milliseconds from the request to the end of the reply. */
  readonly took: number;
}

/** Posts to one receiver over a kept-alive connection. */
interface Sender extends Disposable {
  /** Rejects if no reply comes within 30 seconds, or when the signal is aborted. */
  post(headers: Readonly<Record<string, string>>, body: Uint8Array, signal: AbortSignal): Promise<Reply>;
}

/** Maximum size of the part of a reply that is kept, in bytes. */
const MAX_REPLY = 64 * 1024;
/** Maximum duration of a request, in milliseconds. */
const TIMEOUT = 30_000;

/** Creates a sender; disposing of it closes its connection. */
export function createSender({ url, socketPath, certificate }: Receiver): Sender {
  const secure = url.protocol === 'https:';
  const agent = secure
    ? new HttpsAgent({ keepAlive: true, ...(certificate !== undefined && onlyWith(certificate)) })
    : new HttpAgent({ keepAlive: true });
  return {
    post(headers, body, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<Reply>();
      const began = performance.now();
      const request = (secure ? httpsRequest : httpRequest)(url, {
        method: 'POST',
        socketPath,
        headers: { 'user-agent': 'Portico', ...headers, 'content-length': body.byteLength },
        agent,
        signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT)]),
      });
      request.on('error', reject).on('response', (response) => {
        const chunks: Buffer[] = [];
        let size = 0;
        response.on('error', reject).on('data', (chunk: Buffer) => {
          if (size < MAX_REPLY) chunks.push(chunk);
          size += chunk.length;
        });
        response.on('end', () => {
          const text = Buffer.concat(chunks).subarray(0, MAX_REPLY).toString();
          const { statusCode: status = 0, statusMessage: statusText = '', headers } = response;
          const delivery = deliveryOf(headers);
          resolve({ status, statusText, delivery, body: text, took: performance.now() - began });
        });
      });
      request.end(body);
      return promise;
    },
    [Symbol.dispose]: () => agent.destroy(),
  };
}

/** Accepts only a receiver with this certificate, regardless of its name and issuer. */
export function onlyWith(certificate: string): AgentOptions {
  return { ca: certificate, allowPartialTrustChain: true, checkServerIdentity: () => undefined };
}

/** The id is printed as part of a command, so a value that does not look like an id is ignored. */
function deliveryOf({ 'x-delivery-id': id }: IncomingHttpHeaders): string | undefined {
  return typeof id === 'string' && /^[\w-]{1,64}$/.test(id) ? id : undefined;
}
