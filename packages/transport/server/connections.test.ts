import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type ConnectionLimits, Connections, networkOf } from './connections.ts';

describe('connections', () => {
  const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

  /** A server that answers `/` at once and everything else never. */
  async function listen(limits: ConnectionLimits) {
    const connections = new Connections(limits);
    const server = createServer((request, response) => {
      connections.of(request.socket)?.begin(response);
      if (request.url === '/') response.end('here');
    });
    connections.watch(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const clients: Socket[] = [];
    return {
      connections,
      /** A connection from one of the machine's own addresses, which says something. */
      async dial(text: string, from = '127.0.0.1'): Promise<Socket> {
        const socket = connect({ port, host: '127.0.0.1', localAddress: from });
        clients.push(socket);
        socket.on('error', () => {}).resume();
        await once(socket, 'connect');
        socket.write(text);
        return socket;
      },
      async [Symbol.asyncDispose]() {
        for (const client of clients) client.destroy();
        connections.cut();
        server.close();
        await once(server, 'close');
      },
    };
  }

  const open = (connections: Connections) => [...connections].length;
  const closed = (socket: Socket) => waitFor('the end of a connection', () => socket.closed);

  test('beyond the limit the connection that is idle for longest makes room', async () => {
    await using server = await listen({ max: 3, maxPerAddress: undefined });
    const first = await server.dial(GET);
    await waitFor('it', () => open(server.connections) === 1);
    await delay(50);
    const second = await server.dial(GET);
    const busy = await server.dial(GET.replace('/', '/never'));
    await waitFor('three', () => open(server.connections) === 3);
    await delay(2_300);
    const fourth = await server.dial(GET);
    await closed(first);
    assert.equal(second.closed || busy.closed || fourth.closed, false);
    assert.equal(open(server.connections), 3);
  });

  test('where nobody is idle a new connection is refused', async () => {
    await using server = await listen({ max: 2, maxPerAddress: undefined });
    const busy = [
      await server.dial(GET.replace('/', '/never')),
      await server.dial(GET.replace('/', '/never')),
    ];
    await waitFor('both', () => open(server.connections) === 2);
    await delay(2_300);
    await closed(await server.dial(GET));
    assert.equal(
      busy.some((socket) => socket.closed),
      false,
    );
  });

  test('an address at its own limit takes no place of others', async () => {
    await using server = await listen({ max: 10, maxPerAddress: 2 });
    const other = await server.dial(GET, '127.0.0.2');
    const mine = [await server.dial(GET), await server.dial(GET)];
    await waitFor('all', () => open(server.connections) === 3);
    await closed(await server.dial(GET));
    const another = await server.dial(GET, '127.0.0.2');
    await waitFor('the other', () => open(server.connections) === 4);
    assert.equal(
      [...mine, other, another].some((socket) => socket.closed),
      false,
    );
    await delay(2_300);
    const newer = await server.dial(GET);
    await closed(mine[0] as Socket);
    assert.equal(other.closed || newer.closed, false);
  });

  test('a connection is idle once nothing moved for a moment and nothing is in progress', async () => {
    await using server = await listen({ max: 10, maxPerAddress: undefined });
    const idle = await server.dial(GET);
    const busy = await server.dial(GET.replace('/', '/never'));
    const fresh = await server.dial('');
    await waitFor('all', () => open(server.connections) === 3);
    server.connections.closeIdle();
    await delay(100);
    server.connections.closeIdle();
    await closed(idle);
    assert.equal(busy.closed || fresh.closed, false);
    await delay(1_000);
    server.connections.closeIdle();
    await closed(fresh);
    assert.equal(busy.closed, false);
  });
});

describe('network of', () => {
  test('an IPv4 address is a client of its own, in IPv6 too, and no address is one', () => {
    for (const address of ['127.0.0.1', '::ffff:192.0.2.1', '']) assert.equal(networkOf(address), address);
    assert.equal(networkOf(undefined), '');
  });

  test('the addresses of an IPv6 network of 64 bits are one client', () => {
    const networks: Readonly<Record<string, readonly string[]>> = {
      '2001:db8:0:1': ['2001:db8:0:1::', '2001:db8:0:1::5', '2001:db8:0:1:a:b:c:d', '2001:db8::1:0:0:0:1'],
      '2001:db8:0:0': ['2001:db8::', '2001:db8::1', '2001:db8::ffff:1'],
      '0:0:0:0': ['::', '::1'],
      'fe80:0:0:0': ['fe80::1%eth0', 'fe80::1'],
    };
    for (const [network, addresses] of Object.entries(networks)) {
      for (const address of addresses) assert.equal(networkOf(address), network, address);
    }
  });
});
