import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

/** Maximum handshakes at the same time; beyond it the oldest is cut. */
const MAX_AT_ONCE = 1_000;
/** Maximum bytes of all handshakes under way; beyond it the largest are cut. OpenSSL reads 128 KiB before it judges a message. */
const MAX_BYTES = 16 * 1024 * 1024;
/** How often they are looked at, in milliseconds. */
const CHECK_INTERVAL = 250;
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
  #check: NodeJS.Timeout | undefined;

  /** Notes the connections of a server. */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => this.#add(socket));
    server.on('secureConnection', (socket: TLSSocket) => this.#delete(keyOf(socket)));
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

/** A client that was refused for its certificate, before any request. */
export interface RefusedCertificate {
  /** The client's address. */
  readonly client: string;
  /** Why, in OpenSSL's words. */
  readonly code: string;
}

/** Called for each of them. */
export type OnRefusedCertificate = (refused: RefusedCertificate) => void;

/** What OpenSSL says of a client that sends none. */
const NO_CERTIFICATE = 'ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE';

/** Tells which clients a server that asks for certificates refuses. */
export function watchCertificates(server: Server, onRefused: OnRefusedCertificate): void {
  // A socket knows its address afterwards only if it was asked before.
  server.on('connection', ({ remoteAddress }: Socket) => remoteAddress);
  server.on('tlsClientError', (error: NodeJS.ErrnoException, socket: TLSSocket) => {
    const code = codeOf(error, socket);
    if (code !== undefined) onRefused({ client: addressOf(socket), code });
  });
}

function codeOf({ code }: NodeJS.ErrnoException, { authorizationError }: TLSSocket): string | undefined {
  if (code === NO_CERTIFICATE) return code;
  // Typed as an error, and the code of one.
  return authorizationError == null ? undefined : String(authorizationError);
}

/** Not documented: the connection below TLS. Where Node no longer has it, the address of some is missing. */
function addressOf(socket: TLSSocket & { readonly _parent?: Socket | null }): string {
  return socket.remoteAddress ?? socket._parent?.remoteAddress ?? '';
}
