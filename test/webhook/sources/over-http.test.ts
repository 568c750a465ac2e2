import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { sign } from '@octokit/webhooks-methods';
import { Webhook } from 'standardwebhooks';
import Stripe from 'stripe';
import type { SourcesConfig } from '../../../src/signatures/config.ts';
import { readSources } from '../../../src/signatures/sources.ts';
import { rawHttp } from '../../support/connections.ts';
import { verify } from '../../support/signed-requests.ts';

// Headers and bodies the way Node really hands them over.
const SHARED = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;
const config: SourcesConfig = {
  standard: { scheme: 'standard', secrets: SHARED },
  github: { scheme: 'github', secrets: ['new', 'old'] },
  stripe: { scheme: 'stripe', secrets: 'whsec_x' },
  token: { scheme: 'token', secrets: 'größer', header: 'X-Gitlab-Token' },
};
const settings = readSources(config, 'sources', { env: () => undefined, file: assert.fail }, []);
const sources = new Map(settings.map((source) => [source.name, source]));

const server = createServer(async (request, response) => {
  const source = sources.get(request.url?.slice(1) ?? '') ?? assert.fail(request.url);
  const verdict = verify(
    source.signature.verifier(source.secrets),
    request.headers,
    await buffer(request),
    Date.now(),
  );
  response.writeHead(verdict.ok ? 200 : 401, { connection: 'close' }).end(verdict.ok ? '' : verdict.reason);
});
let url = '';
before(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => server.close());

const now = () => Math.floor(Date.now() / 1000);

/** Sends header lines and a body as they are and gives what came back: a status, and the reason of a refusal. */
async function send(name: string, headers: readonly string[], body: Uint8Array): Promise<string> {
  const head = [`POST /${name} HTTP/1.1`, 'Host: localhost', `Content-Length: ${body.length}`, ...headers];
  const reply = await rawHttp(url, [Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]);
  return `${reply.status} ${/\r\n\r\n(?:\w+\r\n)?([a-z-]*)/.exec(reply.text)?.[1] ?? ''}`.trim();
}

const lines = (headers: Readonly<Record<string, string>>) =>
  Object.entries(headers).map(([name, value]) => `${name}: ${value}`);

test('requests that the senders’ libraries signed, and the same with another body', async () => {
  const payload = '{"type":"user.created","data":{"name":"Zoë"}}';
  const timestamp = now();
  const signature = new Webhook(SHARED).sign('msg_1', new Date(timestamp * 1000), payload);
  const stripe = new Stripe('sk_test_unused').webhooks;
  for (const [name, headers] of [
    [
      'standard',
      { 'Webhook-Id': 'msg_1', 'Webhook-Timestamp': `${timestamp}`, 'Webhook-Signature': signature },
    ],
    ['github', { 'X-Hub-Signature-256': await sign('old', payload) }],
    ['stripe', { 'Stripe-Signature': stripe.generateTestHeaderString({ payload, secret: 'whsec_x' }) }],
  ] as const) {
    assert.equal(await send(name, lines(headers), Buffer.from(payload)), '200', name);
    const forged = Buffer.from(payload.replace('Zoë', 'Zoé'));
    assert.equal(await send(name, lines(headers), forged), '401 wrong-signature', name);
  }
});

test('a body with other bytes that decode to the same text', async () => {
  const source = sources.get('standard') ?? assert.fail();
  const [body, other] = [0xff, 0xfe].map((byte) => Buffer.from([0x22, byte, 0x22]));
  assert.ok(body && other);
  const headers = lines(source.signature.signer(source.secrets)({ id: 'msg_1', timestamp: now(), body }));
  assert.equal(await send('standard', headers, body), '200');
  assert.equal(await send('standard', headers, other), '401 wrong-signature');
});

test('headers that stand twice', async () => {
  const body = Buffer.from('{}');
  const headersOf = (name: string) => {
    const { signature, secrets } = sources.get(name) ?? assert.fail();
    return lines(signature.signer(secrets)({ id: 'msg_1', timestamp: now(), body }));
  };
  const [id = '', timestamp = '', signature = ''] = headersOf('standard');
  assert.equal(await send('standard', [id, id, timestamp, signature], body), '401 malformed-id');
  assert.equal(
    await send('standard', [id, timestamp, timestamp, signature], body),
    '401 malformed-timestamp',
  );
  assert.equal(
    await send('standard', [id, timestamp, signature, signature], body),
    '401 malformed-signature',
  );
  for (const [name, reason] of [
    ['github', 'malformed-signature'],
    ['stripe', 'malformed-signature'],
    ['token', 'wrong-token'],
  ] as const) {
    const [line = ''] = headersOf(name);
    assert.equal(await send(name, [line, line], body), `401 ${reason}`);
  }
});

test('a secret beyond ASCII, as UTF-8 bytes in a header', async () => {
  assert.equal(await send('token', ['x-gitlab-token: größer'], new Uint8Array()), '200');
  assert.equal(await send('token', ['x-gitlab-token: großer'], new Uint8Array()), '401 wrong-token');
});

test('headers as large as Node takes them', async () => {
  const huge = 'v1,'.repeat(4_000);
  const body = Buffer.from('{}');
  const rest = ['webhook-id: msg_1', `webhook-timestamp: ${now()}`];
  assert.equal(
    await send('standard', [...rest, `webhook-signature: ${huge}`], body),
    '401 malformed-signature',
  );
  assert.equal(await send('github', [`x-hub-signature-256: ${huge}`], body), '401 malformed-signature');
  assert.equal(await send('stripe', [`stripe-signature: ${huge}`], body), '401 too-many-signatures');
  assert.equal(await send('token', [`x-gitlab-token: ${huge}`], body), '401 wrong-token');
});
