import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** A fixed address in front of one server at a time, as a balancer or a floating address is one. */
export interface Forwarder extends AsyncDisposable {
  readonly port: number;
  /** Cuts all connections and leads new ones to another port. */
  switchTo(target: number): void;
}

export async function startForwarder(target: number): Promise<Forwarder> {
  let current = target;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(current, '127.0.0.1');
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as { readonly port: number }).port,
    switchTo(to) {
      current = to;
      cut();
    },
    async [Symbol.asyncDispose]() {
      server.close();
      cut();
      await once(server, 'close');
    },
  };
}
