import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import type { Server } from 'node:http';

/**
 * Has more servers listen on the port of one, on the other addresses of its host: "localhost" is mostly one of IPv4 and
 * one of IPv6; none for a Unix socket. Resolves to those that listen; an address that another program has is left out.
 */
export async function listenOnOtherAddresses(
  host: string,
  main: Server,
  create: () => Server,
): Promise<readonly Server[]> {
  const listening = main.address();
  if (listening === null || typeof listening === 'string') return [];
  const { address, port } = listening;
  const found = await lookup(host, { all: true }).catch(() => []);
  const others = found.filter((each) => each.address !== address);
  const servers = await Promise.all(
    others.map(async (other) => {
      const server = create();
      server.listen(port, other.address);
      return once(server, 'listening').then(
        () => server,
        () => undefined,
      );
    }),
  );
  return servers.filter((server) => server !== undefined);
}
