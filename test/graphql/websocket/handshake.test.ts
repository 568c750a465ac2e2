import assert from 'node:assert/strict';
import { lookup } from 'node:dns/promises';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { WebSocket } from 'ws';
import { rawHttp } from '../../support/connections.ts';
import { waitFor } from '../../support/wait-for.ts';
import { openDoor, type Received, send } from '../support/door.ts';
import { connectSocket, PROTOCOL } from '../support/socket-client.ts';

const HANDSHAKE = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
  'sec-websocket-version': '13',
  'sec-websocket-protocol': PROTOCOL,
};

/** The reply to a handshake with other headers; an empty one is left out. */
function handshake(url: string, changed: Readonly<Record<string, string>>): Promise<Received> {
  const headers = Object.entries({ ...HANDSHAKE, ...changed }).filter(([, value]) => value !== '');
  return send(url, { headers: Object.fromEntries(headers) });
}

describe('the handshake of the GraphQL endpoint', () => {
  const refused: Readonly<Record<string, readonly [Record<string, string>, number, string, RegExp]>> = {
    'no sub-protocol': [{ 'sec-websocket-protocol': '' }, 400, 'WEBSOCKET_PROTOCOL', /graphql-transport-ws/],
    'that of subscriptions-transport-ws': [
      { 'sec-websocket-protocol': 'graphql-ws' },
      400,
      'WEBSOCKET_PROTOCOL',
      /graphql-transport-ws/,
    ],
    'no key': [{ 'sec-websocket-key': '' }, 400, 'WEBSOCKET_HANDSHAKE', /Sec-WebSocket-Key/],
    'a wrong key': [{ 'sec-websocket-key': 'x' }, 400, 'WEBSOCKET_HANDSHAKE', /Sec-WebSocket-Key/],
    'another version': [{ 'sec-websocket-version': '8' }, 400, 'WEBSOCKET_HANDSHAKE', /version 13/],
    'a page of another site': [{ 'sec-fetch-site': 'cross-site' }, 403, 'CROSS_SITE', /another site/],
    'a page of another origin, by an older browser': [
      { origin: 'http://evil.example' },
      403,
      'CROSS_SITE',
      /another site/,
    ],
    'a page without an origin': [{ origin: 'null' }, 403, 'CROSS_SITE', /another site/],
    'a host name that begins like ours': [
      { origin: 'http://127.0.0.1.evil.example' },
      403,
      'CROSS_SITE',
      /another site/,
    ],
  };
  test('refusals have a sentence and a code', async () => {
    await using door = await openDoor();
    for (const [what, [changed, status, code, message]] of Object.entries(refused)) {
      const reply = await handshake(door.url, changed);
      assert.equal(reply.status, status, what);
      assert.equal(reply.headers['x-error-code'], code, what);
      assert.equal(reply.headers.connection, 'close', what);
      assert.equal(
        reply.headers['sec-websocket-version'],
        what === 'another version' ? '13' : undefined,
        what,
      );
      const [error] = (
        JSON.parse(reply.text) as { errors: { message: string; extensions: { code: string } }[] }
      ).errors;
      assert.match(error?.message ?? '', message, what);
      assert.equal(error?.extensions.code, code, what);
    }
  });

  test('pages of our own site, programs and clients that offer more may connect', async () => {
    await using door = await openDoor();
    const { port } = new URL(door.url);
    for (const headers of [
      {},
      { 'sec-fetch-site': 'same-origin', origin: 'http://127.0.0.1' },
      { 'sec-fetch-site': 'same-site', origin: 'http://app.example' },
      { origin: `http://127.0.0.1:${port}` },
      { origin: 'http://127.0.0.1:3000' },
    ]) {
      const client = await connectSocket(door.url, { headers });
      client.socket.close();
      await client.closed;
    }
    const both = new WebSocket(door.url.replace('http:', 'ws:'), ['graphql-ws', PROTOCOL]);
    await waitFor('the connection', () => both.readyState === WebSocket.OPEN);
    assert.equal(both.protocol, PROTOCOL);
    both.terminate();
  });

  test('another path of the endpoint, and a door that may have none', async () => {
    await using door = await openDoor({ env: { GRAPHQL_PATH: '/api' } });
    const client = await connectSocket(door.url);
    client.socket.terminate();
    assert.equal(
      (await handshake(door.url.replace('/api', '/graphql'), {})).headers['x-error-code'],
      'NO_WEBSOCKET',
    );
    await using without = await openDoor({ env: { GRAPHQL_MAX_WEB_SOCKETS: '0' } });
    assert.equal((await handshake(without.url, {})).headers['x-error-code'], 'NO_WEBSOCKET');
  });

  test('a WebSocket is logged and counted as a request, without its query', async () => {
    await using door = await openDoor({ env: { LOG_REQUESTS: 'true', INTERFACES: 'graphql,management' } });
    const client = await connectSocket(`${door.url}?token=secret`);
    const entry = await waitFor('the entry', () =>
      door.service.log.entries.find(({ msg }) => msg === 'request'),
    );
    assert.deepEqual([entry.method, entry.path, entry.status], ['GET', '/graphql', 101]);
    const value = async (metric: string) => {
      const reply = await fetch(`${door.service.urls.management}/actuator/metrics/${metric}`);
      const { measurements } = (await reply.json()) as { measurements: readonly { value: number }[] };
      return measurements[0]?.value;
    };
    assert.equal(await value('http.server.requests?tag=status:101'), 1);
    client.subscribe('1', 'subscription { userCreated { id } }');
    client.subscribe('2', 'subscription { userCreated { id } }');
    await waitFor('both', async () => (await value('graphql.websocket.operations')) === 2);
    assert.equal(await value('graphql.websockets?tag=uri:/graphql'), 1);
    client.socket.terminate();
    await waitFor('none', async () => (await value('graphql.websockets')) === 0);
    assert.equal(await value('graphql.websocket.operations'), 0);
  });

  test('behind a request that is in progress it is refused, behind its reply', async () => {
    await using door = await openDoor();
    const lines = Object.entries({ host: 'x', ...HANDSHAKE }).map(([name, value]) => `${name}: ${value}\r\n`);
    const { text } = await rawHttp(door.url, [
      `GET /graphql?query={hello} HTTP/1.1\r\nHost: x\r\n\r\nGET /graphql HTTP/1.1\r\n${lines.join('')}\r\n`,
    ]);
    const replies = text.split('HTTP/1.1 ').slice(1);
    assert.deepEqual(
      replies.map((reply) => reply.slice(0, 3)),
      ['200', '400'],
    );
    assert.match(replies[1] ?? '', /NO_WEBSOCKET/);
  });

  test('on every address of the door', async () => {
    await using door = await openDoor({ env: { HOST: 'localhost' } });
    const { port } = new URL(door.url);
    const addresses = await lookup('localhost', { all: true });
    for (const { address, family } of addresses) {
      const host = family === 6 ? `[${address}]` : address;
      const client = await connectSocket(`http://${host}:${port}/graphql`);
      client.socket.terminate();
    }
    assert.ok(addresses.length > 0);
  });

  test('a message that comes together with the handshake is read, behind another request too', async () => {
    await using door = await openDoor();
    const lines = Object.entries({ host: 'x', ...HANDSHAKE }).map(([name, value]) => `${name}: ${value}\r\n`);
    const ping = Buffer.from('{"type":"ping","payload":{"early":true}}');
    // A text frame whose mask are zeros.
    const frame = Buffer.concat([Buffer.from([0x81, 0x80 | ping.length, 0, 0, 0, 0]), ping]);
    const head = Buffer.from(`GET /graphql HTTP/1.1\r\n${lines.join('')}\r\n`);
    for (const before of ['', 'GET /none HTTP/1.1\r\nHost: x\r\n\r\n']) {
      const socket = connect(Number(new URL(door.url).port), '127.0.0.1');
      let text = '';
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
      });
      socket.write(before);
      if (before !== '') await waitFor('the first reply', () => text.includes('NO_ROUTE'));
      socket.write(Buffer.concat([head, frame]));
      await waitFor('the pong', () => text.includes('{"type":"pong","payload":{"early":true}}'));
      assert.match(text, /HTTP\/1.1 101 Switching Protocols\r\n/);
      socket.destroy();
    }
  });
});
