import type { Server } from 'node:http';

/** The event of a server that brings the connections on which requests arrive. */
export function connectionEvent(server: Server): 'connection' | 'secureConnection' {
  return 'setSecureContext' in server ? 'secureConnection' : 'connection';
}

/** Whether a server speaks TLS. */
export function isSecure(server: Server): boolean {
  return connectionEvent(server) === 'secureConnection';
}
