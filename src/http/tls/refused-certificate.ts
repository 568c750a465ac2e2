import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

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
