import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { connect as connectSecurely } from 'node:tls';
import type { Door } from '../../src/config/options/options.ts';
import { type Setup, startTestService, type TestService } from './service.ts';
import { Silence } from './silence.ts';
import { withoutMoment } from './volatile-replies.ts';
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
  /** The same, and fails unless the replies are the same. */
  agree(door: Door, pieces: readonly Piece[], options?: AskOptions): Promise<void>;
  /** How many requests Fastify of the first has handled. */
  readonly slowly: number;
}

export type Piece = string | Uint8Array;

export interface AskOptions {
  /** In milliseconds; default 400. */
  readonly silence?: number;
  /** What the client does after its last piece; default nothing. */
  readonly ending?: 'end' | 'reset';
  /** Whether the replies are about their moment, which then is taken out of them; default false. */
  readonly volatile?: boolean;
  /** What each of the two gets in the place of DELIVERY: the ids of deliveries differ. */
  readonly delivery?: TwinReplies | undefined;
}

/** Stands for the id of a delivery in what is asked. */
export const DELIVERY = '{delivery}';

/** Starts both; `env` is what they are configured with. */
export async function startTransportTwins(setup: Setup = {}): Promise<TransportTwins> {
  await using cleanup = new AsyncDisposableStack();
  // Both have the setting: the management door shows which ones there are.
  const start = (fastPath: boolean) =>
    startTestService({ ...setup, env: { ...setup.env, HTTP_FAST_PATH: String(fastPath) } });
  const fast = cleanup.use(await start(true));
  const fastify = cleanup.use(await start(false));
  await Promise.all([fast.listen(), fastify.listen()]);
  let slowly = 0;
  // What the fast path answers is no request to Node.
  const count = ({ url }: IncomingMessage) => {
    if (url !== WARM_UP_PATH) slowly++;
  };
  for (const { server } of Object.values(fast.current.doors)) server.on('request', count);
  const all = cleanup.move();

  async function ask(door: Door, pieces: readonly Piece[], options: AskOptions = {}): Promise<TwinReplies> {
    const { volatile = false, delivery = { fast: DELIVERY, fastify: DELIVERY } } = options;
    const askOne = async ({ urls }: TestService, id: string) => {
      const text = await talk(
        urls[door] ?? '',
        pieces.map((piece) => withDelivery(piece, id)),
        options,
      );
      return volatile ? withoutMoment(text) : text;
    };
    const [byFast, byFastify] = await Promise.all([
      askOne(fast, delivery.fast),
      askOne(fastify, delivery.fastify),
    ]);
    return { fast: byFast, fastify: byFastify };
  }

  return {
    fast,
    fastify,
    get slowly() {
      return slowly;
    },
    ask,
    async agree(door, pieces, options) {
      const { fast: byFast, fastify: byFastify } = await ask(door, pieces, options);
      assert.equal(byFast, byFastify);
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** One connection: each piece is written when the one before has gone. */
function talk(url: string, pieces: readonly Piece[], options: AskOptions = {}): Promise<string> {
  const { silence = 400, ending } = options;
  const { protocol, host, hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const secure = protocol === 'https:';
    const place = { host: hostname, port: Number(port), allowHalfOpen: true };
    const socket = secure ? connectSecurely({ ...place, rejectUnauthorized: false }) : connect(place);
    const chunks: Buffer[] = [];
    let pause = new Silence(10_000, () => socket.destroy());
    socket.on('error', () => socket.destroy());
    socket.on('end', () => socket.destroy());
    socket.on('close', () => {
      pause.stop();
      resolve(alike(Buffer.concat(chunks).toString('latin1'), host));
    });
    socket.on(secure ? 'secureConnect' : 'connect', async () => {
      await warmUp(socket);
      socket.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        pause.stop();
        pause = new Silence(silence, () => socket.destroy());
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

function withDelivery(piece: Piece, id: string): Piece {
  const text = typeof piece === 'string' ? piece : Buffer.from(piece).toString('latin1');
  return text.includes(DELIVERY) ? Buffer.from(text.replaceAll(DELIVERY, id), 'latin1') : piece;
}

/** What is of this reply alone is taken out, and the door's own address; their places are kept, the lengths of bodies too. */
function alike(text: string, host: string): string {
  return (
    text
      .replace(/(?<=\r\nx-request-id: )[0-9a-f]{8}-[0-9a-z]+(?=\r\n)/g, 'ID')
      .replace(/(?<=\r\nx-delivery-id: )[0-9a-f-]{36}(?=\r\n)/g, 'DELIVERY')
      .replace(/(?<=\r\nDate: )[^\r]+ GMT(?=\r\n)/g, 'DATE')
      // Each twin has users of its own.
      .replace(/(?<=\r\netag: )[^\r]+/g, 'TAG')
      .replace(/(?<=\r\n)last-modified: [^\r]+\r\n/g, '')
      .replaceAll(host, 'HOST'.padEnd(host.length, '.'))
  );
}
