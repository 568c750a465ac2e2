import { once } from 'node:events';
import { type ClientOptions, WebSocket } from 'ws';
import { waitFor } from '../../support/wait-for.ts';

/** A message of the protocol graphql-transport-ws. */
export interface Message {
  readonly type: string;
  readonly id?: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the server sends
  readonly payload?: any;
}

/** A client that speaks the protocol by hand. */
export interface SocketClient {
  readonly socket: WebSocket;
  /** What has come and was not taken. */
  readonly messages: Message[];
  send(message: unknown): void;
  /** Sends `subscribe`. */
  subscribe(id: string, query: string, variables?: unknown): void;
  /** The next message, in their order. */
  next(): Promise<Message>;
  /** How the server closed. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
}

export const PROTOCOL = 'graphql-transport-ws';

/** Opens a WebSocket, without `connection_init`. */
export async function openSocket(url: string, options: ClientOptions = {}): Promise<SocketClient> {
  const socket = new WebSocket(url.replace('http:', 'ws:'), PROTOCOL, options);
  const messages: Message[] = [];
  socket.on('message', (data) => messages.push(JSON.parse(String(data)) as Message));
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.once('close', (code, reason) => resolve({ code, reason: String(reason) }));
  });
  await once(socket, 'open');
  socket.on('error', () => {});
  const send = (message: unknown) => socket.send(JSON.stringify(message));
  return {
    socket,
    messages,
    send,
    subscribe: (id, query, variables) => send({ type: 'subscribe', id, payload: { query, variables } }),
    async next() {
      await waitFor('a message', () => messages.length > 0);
      return messages.shift() as Message;
    },
    closed,
  };
}

/** Opens a WebSocket whose connection is acknowledged. */
export async function connectSocket(url: string, options: ClientOptions = {}): Promise<SocketClient> {
  const client = await openSocket(url, options);
  client.send({ type: 'connection_init' });
  const { type } = await client.next();
  if (type !== 'connection_ack') throw new Error(`The server sent ${type}`);
  return client;
}
