import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTransportTwins } from '../support/transport-twins.ts';
import { bearer, moduleWith } from './support/tokens.ts';

const BODY = '{"name":"Ann","email":"ann@example.com"}';
const QUERY = '{"query":"mutation { createUser(name: \\"A\\", email: \\"a@b\\") { name } }"}';

/** A request with these fields; the body is JSON. */
function request(line: string, fields: readonly string[], body = ''): string {
  const length =
    body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`, 'Content-Type: application/json'];
  return `${[`${line} HTTP/1.1`, 'Host: x', ...fields, ...length].join('\r\n')}\r\n\r\n${body}`;
}

test('both transports admit and refuse alike, byte for byte', async () => {
  await using twins = await startTransportTwins({
    module: moduleWith(),
    env: {
      INTERFACES: 'rest,graphql',
      API_REQUIRED: 'write',
      API_MAX_FAILURES: '0',
      API_RATE: '1000000/s',
      REST_CORS_ORIGINS: 'https://app.example.com',
      GRAPHQL_CORS_ORIGINS: '*',
    },
  });
  for (const fields of [
    [],
    [`Authorization: ${bearer('reader')}`],
    [`Authorization: ${bearer('writer')}`, 'Origin: https://app.example.com'],
    ['Authorization: Bearer wrong', 'Origin: https://evil.example.com'],
    ['Authorization: Bearer wr?ong', 'Accept: application/problem+json'],
    ['authorization: Basic abc', 'Sec-Fetch-Site: cross-site', 'Origin: https://app.example.com'],
  ]) {
    for (const [door, line, body] of [
      ['rest', 'GET /users/9', ''],
      ['rest', 'DELETE /delete/9', ''],
      ['rest', 'POST /users', BODY],
      ['rest', 'POST /users', 'x'.repeat(70_000)],
      ['graphql', 'POST /graphql', QUERY],
      ['graphql', 'POST /graphql', '{"query":"{ __typename }"}'],
    ] as const) {
      await twins.agree(door, [request(line, fields, body)], { silence: 150 });
    }
  }
  assert.ok(twins.slowly < 20, `${twins.slowly} requests were left to Fastify`);
});
