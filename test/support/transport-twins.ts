import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Door } from '../../src/config/options/door.ts';
import { type Setup, startTestService, type TestService } from './service.ts';
import { WARM_UP_PATH, warmUp } from './warm-up.ts';

/** What a connection brought back, without what differs between any two replies. */
export interface TwinReplies {
  readonly fast: string;
  readonly fastify: string;
}

/** Two services of one configuration, the second without the fast path. */
export interface TransportTwins extends AsyncDisposable {
  readonly fast: TestService;
  readonly fastify: TestService;
  /**
   * Writes the same pieces to one door of both, each behind a first request that is left out of all that follows;
   * resolves to what came until the doors closed the connection or were silent.
   */
  ask(door: Door, pieces: readonly Piece[], options?: AskOptions): Promise<TwinReplies>;
  /** How many requests Fastify of the first has handled. */
  readonly slowly: number;
}

export type Piece = string | Uint8Array;

export interface AskOptions {
  /** In milliseconds; default 400. */
  readonly silence?: number;
  /** What the client does after its last piece; default nothing. */
  readonly ending?: 'end' | 'reset';
}

/** Starts both; `env` is what they are configured with. */
export async function startTransportTwins(setup: Setup = {}): Promise<TransportTwins> {
  await using cleanup = new AsyncDisposableStack();
  const fast = cleanup.use(await startTestService(setup));
  const fastify = cleanup.use(
    await startTestService({ ...setup, env: { ...setup.env, HTTP_FAST_PATH: 'false' } }),
  );
  await Promise.all([fast.listen(), fastify.listen()]);
  let slowly = 0;
  // What the fast path answers is no request to Node.
  const count = ({ url }: IncomingMessage) => {
    if (url !== WARM_UP_PATH) slowly++;
  };
  for (const { server } of Object.values(fast.current.doors)) server.on('request', count);
  const all = cleanup.move();
  return {
    fast,
    fastify,
    get slowly() {
      return slowly;
    },
    async ask(door, pieces, options) {
      const [byFast, byFastify] = await Promise.all(
        [fast, fastify].map(({ urls }) => talk(urls[door] ?? '', pieces, options)),
      );
      return { fast: byFast ?? '', fastify: byFastify ?? '' };
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** One connection: each piece is written when the one before has gone. */
function talk(url: string, pieces: readonly Piece[], options: AskOptions = {}): Promise<string> {
  const { silence = 400, ending } = options;
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    const chunks: Buffer[] = [];
    let pause = setTimeout(() => socket.destroy(), 5_000);
    socket.on('error', () => socket.destroy());
    socket.on('end', () => socket.destroy());
    socket.on('close', () => {
      clearTimeout(pause);
      resolve(alike(Buffer.concat(chunks).toString('latin1')));
    });
    socket.on('connect', async () => {
      await warmUp(socket);
      socket.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        clearTimeout(pause);
        pause = setTimeout(() => socket.destroy(), silence);
      });
      for (const piece of pieces) {
        if (!socket.writable) return;
        socket.write(piece);
        await nextTurn();
        await nextTurn();
      }
      if (ending === 'end') socket.end();
      if (ending === 'reset') socket.resetAndDestroy();
    });
  });
}

/** What is of this reply alone is taken out, its place is kept. */
function alike(text: string): string {
  return text
    .replace(/(?<=\r\nx-request-id: )[0-9a-f]{8}-[0-9a-z]+(?=\r\n)/g, 'ID')
    .replace(/(?<=\r\nx-delivery-id: )[0-9a-f-]{36}(?=\r\n)/g, 'DELIVERY')
    .replace(/(?<=\r\nDate: )[^\r]+ GMT(?=\r\n)/g, 'DATE');
}
