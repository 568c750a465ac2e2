import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

/** Maximum concurrent handshakes; beyond it the oldest is closed. */
const MAX_AT_ONCE = 1_000;
/**
 * Maximum bytes received by all handshakes in progress; beyond it the largest are closed. OpenSSL reads 128
 * KiB before it rejects a message.
 */
const MAX_BYTES = 16 * 1024 * 1024;
/** How often the bytes are checked, in milliseconds. */
const CHECK_INTERVAL = 250;
/** Age from which a handshake no longer delays a stop, in milliseconds. */
const MAX_AGE_IN_STOP = 1_000;

interface Handshake {
  readonly socket: Socket;
  readonly since: number;
}

/** The connections of a server during their TLS handshakes. */
export class Handshakes {
  /** By the client's address and port, oldest first. */
  readonly #open = new Map<string, Handshake>();
  #check: NodeJS.Timeout | undefined;

  /** Tracks the handshakes of a server. */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => this.#add(socket));
    server.on('secureConnection', (socket: TLSSocket) => this.#delete(keyOf(socket)));
  }

  /** Closes handshakes that are too old to delay a stop. */
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
    this.#check ??= setInterval(() => this.#cutLargest(), CHECK_INTERVAL).unref();
    socket.once('close', () => {
      if (this.#open.get(key)?.socket === socket) this.#delete(key);
    });
  }

  #delete(key: string): void {
    this.#open.delete(key);
    if (this.#open.size > 0) return;
    clearInterval(this.#check);
    this.#check = undefined;
  }

  #cutLargest(): void {
    const largestFirst = Array.from(this.#open.values(), ({ socket }) => ({
      socket,
      bytes: socket.bytesRead,
    }));
    largestFirst.sort((a, b) => b.bytes - a.bytes);
    let total = largestFirst.reduce((sum, { bytes }) => sum + bytes, 0);
    for (const { socket, bytes } of largestFirst) {
      if (total <= MAX_BYTES) return;
      total -= bytes;
      socket.destroy();
    }
  }
}

function keyOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** A client whose certificate was refused, before any request. */
export interface RefusedCertificate {
  /** The client's address. */
  readonly client: string;
  /** The reason, as an OpenSSL or Node error code. */
  readonly code: string;
}

/** OpenSSL's error for a client that sends no certificate. */
const NO_CERTIFICATE = 'ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE';

/** Reports the clients whose certificates a server refuses. */
export function watchCertificates(server: Server, onRefused: (refused: RefusedCertificate) => void): void {
  // Read the address now: Node caches it, and it is unavailable once the socket is closed.
  server.on('connection', ({ remoteAddress }: Socket) => remoteAddress);
  server.on('tlsClientError', (error: NodeJS.ErrnoException, socket: TLSSocket) => {
    const code = codeOf(error, socket);
    if (code !== undefined) onRefused({ client: addressOf(socket), code });
  });
}

function codeOf({ code }: NodeJS.ErrnoException, { authorizationError }: TLSSocket): string | undefined {
  if (code === NO_CERTIFICATE) return code;
  // Typed as an Error, but it holds the error's code.
  return authorizationError == null ? undefined : String(authorizationError);
}

/** Falls back to the undocumented socket below TLS; if Node removes it, some addresses are missing. */
function addressOf(socket: TLSSocket & { readonly _parent?: Socket | null }): string {
  return socket.remoteAddress ?? socket._parent?.remoteAddress ?? '';
}
