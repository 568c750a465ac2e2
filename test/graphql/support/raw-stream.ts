import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

const SUBSCRIPTION = JSON.stringify({ query: 'subscription { userCreated { id name } }' });

/** Opens a subscription over a connection of its own and resolves once the answer has begun. */
export async function rawSubscription(url: string, query = SUBSCRIPTION): Promise<Socket> {
  const { hostname, port, pathname } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  socket.write(
    `POST ${pathname} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(query)}\r\n\r\n${query}`,
  );
  await once(socket, 'data');
  return socket;
}
