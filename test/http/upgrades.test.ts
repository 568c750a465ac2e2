import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { rawHttp } from '../support/connections.ts';
import { startTestService } from '../support/service.ts';

const HANDSHAKE =
  'Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n';
const request = (path: string, lines: string, start = 'GET') =>
  `${start} ${path} HTTP/1.1\r\nHost: x\r\n${lines}\r\n`;
const bodyOf = (text: string) => text.split('\r\n\r\n')[1];
const MESSAGE = 'There are no WebSockets here';

describe('a WebSocket where there are none', () => {
  for (const fastPath of ['true', 'false']) {
    test(`is a 400 that says so and closes, fast path ${fastPath}`, async () => {
      await using service = await startTestService({ env: { HTTP_FAST_PATH: fastPath } });
      await service.listen();
      const bodies: readonly (readonly [door: string, path: string, body: string])[] = [
        ['rest', '/users', JSON.stringify({ status: 'error', message: MESSAGE })],
        ['rest', '/none', JSON.stringify({ status: 'error', message: MESSAGE })],
        [
          'management',
          '/actuator/health',
          JSON.stringify({ status: 400, error: 'Bad Request', message: MESSAGE }),
        ],
        ['webhook', '/webhook', MESSAGE],
        [
          'graphql',
          '/',
          JSON.stringify({ errors: [{ message: MESSAGE, extensions: { code: 'NO_WEBSOCKET' } }] }),
        ],
      ];
      for (const [door, path, body] of bodies) {
        const url = service.urls[door] ?? '';
        // Behind another request too, and what comes behind it is not answered.
        for (const before of ['', request(path, '')]) {
          const { text } = await rawHttp(url, [before + request(path, HANDSHAKE) + request(path, '')]);
          const replies = text.split(/(?=HTTP\/1.1 )/);
          assert.equal(replies.length, before === '' ? 1 : 2, `${door} ${path}`);
          const last = replies.at(-1) ?? '';
          assert.match(last, /^HTTP\/1.1 400 Bad Request\r\n/);
          assert.match(last, /\r\nconnection: close\r\n/i);
          assert.match(last, /\r\nx-error-code: NO_WEBSOCKET\r\n/);
          assert.match(last, /\r\nx-request-id: /);
          assert.equal(bodyOf(last), body);
        }
      }
    });
  }

  test('other upgrades are answered as if nobody had asked, and close', async () => {
    await using service = await startTestService();
    await service.listen();
    const url = service.urls.graphql ?? '';
    const path = '/graphql?query={hello}';
    const ignored = {
      h2c: request(
        path,
        'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n',
      ),
      'not named by Connection': request(path, 'Upgrade: websocket\r\n'),
      'in HTTP/1.0': request(path, HANDSHAKE).replace('HTTP/1.1', 'HTTP/1.0'),
      'with a body': `${request('/graphql', 'Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Type: application/json\r\nContent-Length: 19\r\n', 'POST')}{"query":"{hello}"}`,
    };
    for (const [what, bytes] of Object.entries(ignored)) {
      const { text } = await rawHttp(url, [bytes + bytes]);
      assert.equal(text.split('HTTP/1.1 ').length, 2, what);
      assert.match(text, /^HTTP\/1.1 200 OK\r\nconnection: close\r\n/, what);
      assert.equal(bodyOf(text), '{"data":{"hello":"Hello from Portico!"}}', what);
    }
  });
});
