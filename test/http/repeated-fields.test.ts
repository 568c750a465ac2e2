import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import type { Door } from '../../src/config/options/options.ts';
import { bearer, tokens } from '../access/support/tokens.ts';
import { rawHttp } from '../support/connections.ts';
import { startTestService } from '../support/service.ts';
import { startTransportTwins } from '../support/transport-twins.ts';

const SECRET = 'a-secret-of-the-tests';
const BODY = '{"event":"paid","data":{}}';
const hex = (text: string) => createHmac('sha256', SECRET).update(text).digest('hex');
const now = Math.floor(Date.now() / 1_000);
const KEY = Buffer.from('a key of thirty-two bytes or more');
const standard = (id: string) =>
  `v1,${createHmac('sha256', KEY).update(`${id}.${now}.${BODY}`).digest('base64')}`;

const MODULE = `export default ${JSON.stringify({
  api: { tokens },
  webhook: {
    sources: {
      github: { scheme: 'github', secrets: SECRET },
      stripe: { scheme: 'stripe', secrets: SECRET },
      standard: { scheme: 'standard', secrets: `whsec_${KEY.toString('base64')}` },
      shop: { scheme: 'token', secrets: SECRET, header: 'x-shop-token' },
    },
  },
})};`;

const AUTHORIZED = `Authorization: ${bearer('both')}`;
const ADMIN = `Authorization: Basic ${Buffer.from(`admin:${SECRET}`).toString('base64')}`;
const USER = '{"name":"Ann","email":"ann@example.com"}';
const REFUSED = '400 DUPLICATE_FIELD';

interface Case {
  readonly door: Door;
  readonly start: string;
  readonly lines: readonly string[];
  readonly body?: string;
  /** The status, and the code of a refusal. */
  readonly gives: string;
}

const repeated = (door: Door, start: string, lines: readonly string[], gives: string, body = ''): Case => ({
  door,
  start,
  lines,
  gives,
  body,
});
const hook = (path: string, lines: readonly string[], gives: string) =>
  repeated('webhook', `POST /webhook${path}`, lines, gives, BODY);

/** What each field means when it comes twice, where it decides something. */
const CASES: readonly Case[] = [
  // One value decides, so that two are read differently by two programs in a row.
  ...[AUTHORIZED, 'Authorization: Bearer wrong', 'Authorization:'].flatMap((other) => [
    repeated('rest', 'GET /users', [AUTHORIZED, other.toLowerCase()], REFUSED),
    repeated('rest', 'POST /users', [other, AUTHORIZED], REFUSED, USER),
    repeated('graphql', 'GET /graphql?query=%7Bhello%7D', [AUTHORIZED, other], REFUSED),
    repeated('management', 'GET /actuator/health', [ADMIN, other], REFUSED),
    hook('', [other, `X-Webhook-Token: ${SECRET}`, AUTHORIZED], REFUSED),
  ]),
  repeated('rest', 'GET /users', ['Host: x', AUTHORIZED], '400 DUPLICATE_HOST'),
  repeated(
    'rest',
    'PUT /update/1',
    [AUTHORIZED, 'Content-Type: application/json', 'content-type: application/merge-patch+json'],
    REFUSED,
    USER,
  ),
  repeated(
    'graphql',
    'POST /graphql',
    [AUTHORIZED, 'Content-Type: application/json', 'Content-Type: text/plain'],
    REFUSED,
    '{"query":"{hello}"}',
  ),
  ...['If-Unmodified-Since', 'If-Modified-Since'].map((name) =>
    repeated(
      'rest',
      'PUT /update/1',
      [AUTHORIZED, `${name}: Sun, 22 Nov 2099 12:00:00 GMT`, `${name}: Sun, 22 Nov 2020 12:00:00 GMT`],
      REFUSED,
      USER,
    ),
  ),
  repeated(
    'rest',
    'POST /users',
    [AUTHORIZED, 'Origin: http://x', 'Origin: http://evil.example'],
    REFUSED,
    USER,
  ),
  repeated(
    'rest',
    'POST /users',
    [AUTHORIZED, 'Sec-Fetch-Site: same-origin', 'Sec-Fetch-Site: cross-site'],
    REFUSED,
    USER,
  ),
  repeated('rest', 'GET /users', [AUTHORIZED, 'Last-Event-ID: 1.1', 'Last-Event-ID: 1.2'], REFUSED),
  // Two are one that nobody has: HTTP has them joined by a comma and a space (RFC 9110 5.3).
  repeated(
    'rest',
    'POST /users',
    [AUTHORIZED, 'Idempotency-Key: a', 'Idempotency-Key: b'],
    '400 INVALID_IDEMPOTENCY_KEY',
    USER,
  ),
  hook('', [`X-Webhook-Token: ${SECRET}`, `X-Webhook-Token: ${SECRET}`], '401 WRONG_TOKEN'),
  hook('', [`X-Webhook-Token: ${SECRET}`, 'X-Webhook-Token: wrong'], '401 WRONG_TOKEN'),
  hook('', ['X-Webhook-Token: wrong', `X-Webhook-Token: ${SECRET}`], '401 WRONG_TOKEN'),
  hook('/shop', [`X-Shop-Token: ${SECRET}`, `X-Shop-Token: ${SECRET}`], '401 REFUSED'),
  hook(
    '/github',
    [
      'X-GitHub-Event: push',
      `X-Hub-Signature-256: sha256=${hex(BODY)}`,
      `X-Hub-Signature-256: sha256=${hex(BODY)}`,
    ],
    '401 REFUSED',
  ),
  hook(
    '/stripe',
    [
      `Stripe-Signature: t=${now},v1=${hex(`${now}.${BODY}`)}`,
      `Stripe-Signature: t=${now},v1=${hex(`${now}.${BODY}`)}`,
    ],
    '401 REFUSED',
  ),
  hook(
    '/standard',
    ['webhook-id: a', 'webhook-id: b', `webhook-timestamp: ${now}`, `webhook-signature: ${standard('a')}`],
    '401 REFUSED',
  ),
  hook(
    '/standard',
    [
      'webhook-id: a',
      `webhook-timestamp: ${now}`,
      `webhook-timestamp: ${now}`,
      `webhook-signature: ${standard('a')}`,
    ],
    '401 REFUSED',
  ),
  // A list, of which the lines are parts.
  repeated(
    'rest',
    'PUT /update/1',
    [AUTHORIZED, 'If-Match: "1"', 'If-Match: "2"'],
    '412 PRECONDITION_FAILED',
    USER,
  ),
  repeated(
    'rest',
    'GET /users/99',
    [AUTHORIZED, 'Prefer: return=minimal', 'Prefer: handling=strict'],
    '404 USER_NOT_FOUND',
  ),
  repeated('rest', 'GET /users', [AUTHORIZED, 'Accept: text/plain', 'Accept: application/json'], '200'),
];

test('what a field means that comes twice is the same on both transports, and nobody picks one of two', async () => {
  await using twins = await startTransportTwins({
    module: MODULE,
    env: {
      API_REQUIRED: 'all',
      WEBHOOK_SECRET: SECRET,
      MANAGEMENT_USER: 'admin',
      MANAGEMENT_PASSWORD: SECRET,
    },
  });
  for (const { fast, fastify } of [twins]) {
    for (const { urls } of [fast, fastify]) {
      const headers = { 'content-type': 'application/json', authorization: bearer('both') };
      await fetch(`${urls.rest}/users`, { method: 'POST', headers, body: USER });
    }
  }
  for (const { door, start, lines, body = '', gives } of CASES) {
    const fields = ['Host: x', ...lines, ...(body === '' ? [] : [`Content-Length: ${body.length}`])];
    const bytes = `${start} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n${body}`;
    const { fast, fastify } = await twins.ask(door, [bytes], { volatile: true });
    assert.equal(fast, fastify, bytes);
    const [, status] = /^HTTP\/1\.1 (\d{3}) /.exec(fast) ?? [];
    const [, code = ''] = /^x-error-code: (.*)\r$/im.exec(fast) ?? [];
    assert.equal(`${status} ${code}`.trim(), gives, bytes);
  }
});

test('what two lines of X-Forwarded-For say is one list, of which the trusted end counts', async () => {
  for (const fastPath of ['true', 'false']) {
    await using service = await startTestService({
      module: MODULE,
      env: {
        INTERFACES: 'rest',
        API_REQUIRED: 'all',
        API_MAX_FAILURES: '1',
        HTTP_FAST_PATH: fastPath,
        TRUST_PROXY: 'loopback',
      },
    });
    await service.listen();
    const ask = async (token: string, ...clients: readonly string[]) => {
      const lines = clients.map((client) => `X-Forwarded-For: ${client}\r\n`).join('');
      const head = `GET /users HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n${lines}`;
      return (await rawHttp(service.urls.rest ?? '', [`${head}Connection: close\r\n\r\n`])).status;
    };
    assert.equal(await ask('a', '203.0.113.1'), 401);
    assert.equal(await ask('b', '198.51.100.1', '203.0.113.1'), 429);
    assert.equal(await ask('c', '203.0.113.1', '198.51.100.1'), 401);
  }
});
