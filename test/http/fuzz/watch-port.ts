import type { Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/** The port of a server that listens, and the ports from which it has accepted connections that are open. */
export function watchPort(server: Server) {
  const open = new Set<number>();
  server.on('connection', (socket: Socket) => {
    const { remotePort = 0 } = socket;
    open.add(remotePort);
    socket.once('close', () => open.delete(remotePort));
  });
  return { port: (server.address() as AddressInfo).port, hasAccepted: (port: number) => open.has(port) };
}
