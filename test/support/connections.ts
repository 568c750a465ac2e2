import { once } from 'node:events';
import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';

/** What came back over a raw connection before it ended. */
export interface RawReply {
  /** Every byte, as latin1 text. */
  readonly text: string;
  /** The status of the first reply; undefined when the peer closed without one. */
  readonly status: number | undefined;
  /** How many replies the bytes hold, counted by their status lines. */
  readonly replies: number;
}

/**
 * Writes `parts` to `url`'s host and port exactly as they are and reads until the peer closes the connection,
 * or until it has been silent for `silence` milliseconds after the first byte (default 300), or for `within`
 * milliseconds altogether (default 100,000). A reset counts as a close: what was read until then is the reply.
 */
export function rawHttp(
  url: string,
  parts: readonly (string | Uint8Array)[],
  { silence = 300, within = 100_000 }: { silence?: number; within?: number } = {},
): Promise<RawReply> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port) });
    const chunks: Buffer[] = [];
    let pause: Silence | undefined;
    const limit = setTimeout(() => socket.destroy(), within);
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      pause ??= new Silence(silence, () => socket.destroy());
      pause.broken();
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      pause?.stop();
      clearTimeout(limit);
      resolve(read(Buffer.concat(chunks).toString('latin1')));
    });
    for (const part of parts) socket.write(part);
  });
}

function read(text: string): RawReply {
  const statuses = [...text.matchAll(/^HTTP\/1\.[01] (\d{3}) /gm)];
  const first = statuses[0]?.[1];
  return { text, status: first === undefined ? undefined : Number(first), replies: statuses.length };
}

/** Into so many parts a silence is divided, of which a held event loop takes one at most. */
const PARTS = 8;

/** Tells when nothing has come for a while. Time in which this process could not read counts little. */
export class Silence {
  readonly #timer: NodeJS.Timeout;
  #left = PARTS;

  /** Calls `end` once, after `ms` milliseconds without a `broken()`, or never after `stop()`. */
  constructor(ms: number, end: () => void) {
    this.#timer = setInterval(() => {
      if (--this.#left > 0) return;
      this.stop();
      end();
    }, ms / PARTS);
  }

  /** Something came: the silence begins again. */
  broken(): void {
    this.#left = PARTS;
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

export interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Reply {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** One connection to a door for all that is asked, kept between requests. */
export interface KeptConnection extends Disposable {
  ask(path: string, asked?: Asked): Promise<Reply>;
}

/** Opens it and sends its first request, which is never the fast path's. */
export async function keepConnection(url: string): Promise<KeptConnection> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  async function ask(path: string, { method = 'GET', headers = {}, body }: Asked = {}): Promise<Reply> {
    const sent = request(url + path, { agent, method, headers });
    sent.end(body);
    const [reply] = (await once(sent, 'response')) as [IncomingMessage];
    return { status: reply.statusCode, headers: reply.headers, body: await text(reply) };
  }
  await ask('/');
  return { ask, [Symbol.dispose]: () => agent.destroy() };
}

/** Where the first request of a connection goes; no door has it. */
export const WARM_UP_PATH = '/warm-up';

/**
 * Sends the first request of a connection and resolves once its reply is there, or the connection is gone. The fast
 * path takes none before it.
 */
export function warmUp(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    let text = '';
    const read = (piece: Buffer) => {
      text += piece.toString('latin1');
      const [head = '', body] = text.split('\r\n\r\n', 2);
      const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
      if (body !== undefined && length !== undefined && body.length >= Number(length)) done();
    };
    const done = () => {
      socket.off('data', read).off('close', done);
      resolve();
    };
    socket.on('data', read).on('close', done);
    socket.write(`GET ${WARM_UP_PATH} HTTP/1.1\r\nHost: x\r\n\r\n`);
  });
}
