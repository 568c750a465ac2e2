import { Agent, request as httpRequest } from 'node:http';
import { request as httpsRequest, Agent as TlsAgent } from 'node:https';
import type { FastifyInstance } from 'fastify';
import type { Door, Reply, SendOptions } from './check.ts';

type Headers = Reply['headers'];

function replyOf(status: number, headers: Headers, body: Uint8Array): Reply {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(body);
  return { status, headers, text, json: () => JSON.parse(text) };
}

/** A door without a socket. `instance` is asked anew for each request, because a restart replaces it. */
export function inProcessDoor(instance: () => FastifyInstance | undefined): Door {
  return {
    url: undefined,
    async send(method, path, { headers = {}, body }: SendOptions = {}) {
      const app = instance();
      if (app === undefined) throw new Error('this door is not there');
      const reply = await app.inject({
        // Node's own list of methods is wider than the type's.
        method: method as 'GET',
        url: path,
        headers: { ...headers },
        ...(body === undefined ? {} : { payload: Buffer.from(body) }),
      });
      return replyOf(reply.statusCode, reply.headers as Headers, reply.rawPayload);
    },
  };
}

// Connections are kept, as most clients do, so that requests go by the fast path. Who signed the certificate is a matter of other tests.
const agent = new Agent({ keepAlive: true });
const tlsAgent = new TlsAgent({ keepAlive: true, rejectUnauthorized: false });

/** A door behind a real socket. */
export function socketDoor(url: () => string | undefined): Door {
  return {
    get url() {
      return url();
    },
    async send(method, path, options = {}) {
      const base = url();
      if (base === undefined) throw new Error('this door is not there');
      for (let again = 5; ; again--) {
        const reply = await sendOverSocket(base, method, path, options);
        if (reply !== undefined && (!isTooBusy(reply) || again === 0)) return reply;
      }
    },
  };
}

/** A database on a busy machine may be late. Nothing was stored then. */
function isTooBusy({ status, headers }: Reply): boolean {
  return status === 503 && headers['x-error-code'] === 'STORE_UNAVAILABLE';
}

/** Resolves to undefined if the door closed a kept connection before the request came. */
function sendOverSocket(
  base: string,
  method: string,
  path: string,
  options: SendOptions,
): Promise<Reply | undefined> {
  const { protocol, hostname, port, pathname } = new URL(base);
  const isTls = protocol === 'https:';
  const request = isTls ? httpsRequest : httpRequest;
  const prefix = pathname.replace(/\/$/, '');
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let answered = false;
    const place = { host: hostname, port, method, path: prefix + path };
    const call = request({ ...place, agent: isTls ? tlsAgent : agent });
    for (const [name, value] of Object.entries(options.headers ?? {})) call.setHeader(name, value);
    call.on('response', (response) => {
      answered = true;
      const finish = () =>
        resolve(replyOf(response.statusCode ?? 0, response.headers, Buffer.concat(chunks)));
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', finish);
      // A server that refuses a large body may close before it has read all of it; its reply still counts.
      response.on('error', () => (response.complete ? finish() : reject(new Error('the reply broke off'))));
    });
    call.on('error', (error) => {
      if (answered) return;
      if (call.reusedSocket && 'code' in error && error.code === 'ECONNRESET') resolve(undefined);
      else reject(error);
    });
    call.setTimeout(100_000, () => call.destroy(new Error('no reply within 100 s')));
    // As bytes: Node writes headers and a body that is a string together, and then the headers as UTF-8.
    const body = options.body === undefined ? undefined : Buffer.from(options.body);
    // Node gives the body of some methods no length, and its bytes would be the next request.
    if (body !== undefined) call.setHeader('content-length', body.length);
    call.end(body);
  });
}
