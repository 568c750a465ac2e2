import type { WebSocket } from 'ws';
import { KEEP_ALIVE } from '../../http/event-stream/event-streams.ts';
import { LIMITS } from '../../http/limits.ts';

/** Pings clients, and cuts those of which nothing comes until the next ping is due. */
export class Heartbeat {
  /** Bytes that had come of a client when it was pinged last; undefined where a ping would wait behind other data. */
  readonly #clients = new Map<WebSocket, { readonly socket: CountedSocket; pingedAt: number | undefined }>();
  #timer: NodeJS.Timeout | undefined;

  add(client: WebSocket, socket: CountedSocket): void {
    this.#clients.set(client, { socket, pingedAt: undefined });
    // Notices when nothing of what waits for the client is taken any more.
    socket.setTimeout(LIMITS.idleReplyTimeout, () => client.terminate());
    this.#timer ??= setInterval(() => this.#beat(), KEEP_ALIVE).unref();
  }

  delete(client: WebSocket): void {
    this.#clients.delete(client);
    if (this.#clients.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #beat(): void {
    for (const [client, state] of this.#clients) {
      const { bytesRead } = state.socket;
      if (client.bufferedAmount > 0) state.pingedAt = undefined;
      else if (state.pingedAt === bytesRead) client.terminate();
      else {
        state.pingedAt = bytesRead;
        client.ping();
      }
    }
  }
}

/** What is needed of a connection. */
interface CountedSocket {
  readonly bytesRead: number;
  setTimeout(milliseconds: number, listener: () => void): unknown;
}
