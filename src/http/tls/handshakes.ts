import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

/** Maximum handshakes at the same time; beyond it the oldest is cut. */
const MAX_AT_ONCE = 1_000;
/** Age at which a handshake holds up no stop, in milliseconds. */
const MAX_AGE_IN_STOP = 1_000;

interface Handshake {
  readonly socket: Socket;
  readonly since: number;
}

/** The connections of a server whose TLS handshake has not ended: no request is known of them. */
export class Handshakes {
  /** By the client's address and port, oldest first. */
  readonly #open = new Map<string, Handshake>();

  /** Notes the connections of a server. */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => this.#add(socket));
    server.on('secureConnection', (socket: TLSSocket) => this.#open.delete(keyOf(socket)));
  }

  /** Cuts those that have lasted for too long to hold up a stop. */
  cutOld(): void {
    const now = performance.now();
    for (const { socket, since } of this.#open.values()) {
      if (now - since < MAX_AGE_IN_STOP) return;
      socket.destroy();
    }
  }

  #add(socket: Socket): void {
    const [oldest] = this.#open.values();
    if (oldest !== undefined && this.#open.size >= MAX_AT_ONCE) oldest.socket.destroy();
    const key = keyOf(socket);
    this.#open.set(key, { socket, since: performance.now() });
    socket.once('close', () => {
      if (this.#open.get(key)?.socket === socket) this.#open.delete(key);
    });
  }
}

function keyOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
