import assert from 'node:assert/strict';
import { createHash, createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { describe, test } from 'node:test';
import { crc32 } from 'node:zlib';
import { makeCertificate } from '../../test/support/certificates.ts';
import { verify } from '../../test/support/signed-requests.ts';
import { valueAt } from '../core/json.ts';
import { UnusableSecretError } from './hmac.ts';
import { buildBody, signDelivery } from './outgoing.ts';
import { certificateKeys, paypal } from './paypal.ts';
import { samplesOf } from './samples.ts';
import type { AnyScheme, RequestHeaders } from './schemes.ts';
import { senderScheme, senderSecretProblem } from './senders.ts';
import { defaultLayout, readDelivery } from './sources.ts';

const SECONDS = 1_772_443_800;
const NOW = SECONDS * 1_000;
const ok = { ok: true };
const no = (reason: string) => ({ ok: false, reason });
const usual = { tolerance: undefined };

describe('shopify', () => {
  const BODY = Buffer.from('{"id":1,"title":"Größe"}');
  const headers = (secret: string, body: Uint8Array = BODY) => ({
    'x-shopify-hmac-sha256': createHmac('sha256', secret).update(body).digest('base64'),
  });
  const check = (sent: RequestHeaders, body: Uint8Array = BODY) =>
    verify(senderScheme('shopify', usual).verifier(['new', 'old']), sent, body, NOW);

  test('base64 over the body, by either secret', () => {
    assert.deepEqual(check(headers('new')), ok);
    assert.deepEqual(check(headers('old')), ok);
    assert.deepEqual(check(headers('other')), no('wrong-signature'));
    assert.deepEqual(check(headers('new'), Buffer.from('{"id":2,"title":"Größe"}')), no('wrong-signature'));
    const hex = createHmac('sha256', 'new').update(BODY).digest('hex');
    assert.deepEqual(check({ 'x-shopify-hmac-sha256': hex }), no('malformed-signature'));
    assert.deepEqual(check({}), no('no-signature'));
  });
});

describe('gitlab', () => {
  const SIGNING = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const BODY = Buffer.from('{"object_kind":"push"}');
  const signed = (key: Uint8Array, timestamp = SECONDS) => ({
    'webhook-id': 'a',
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v1,${createHmac('sha256', key).update(`a.${timestamp}.`).update(BODY).digest('base64')}`,
  });
  const check = (secrets: readonly string[], headers: RequestHeaders) =>
    verify(senderScheme('gitlab', usual).verifier(secrets), headers, BODY, NOW);

  test('the secret token', () => {
    assert.deepEqual(check(['new', 'old'], { 'x-gitlab-token': 'old' }), ok);
    assert.deepEqual(check(['new', 'old'], { 'x-gitlab-token': 'olda' }), no('wrong-token'));
    assert.deepEqual(check(['new'], {}), no('no-token'));
  });

  test('the signing token', () => {
    const right = signed(Buffer.alloc(32, 7));
    assert.deepEqual(check([SIGNING], right), ok);
    assert.deepEqual(check([SIGNING], signed(Buffer.alloc(32, 8))), no('wrong-signature'));
    assert.deepEqual(check([SIGNING], signed(Buffer.alloc(32, 7), SECONDS - 301)), no('too-old'));
    assert.deepEqual(check([SIGNING], { 'x-gitlab-token': SIGNING }), no('no-signature'));
  });

  test('while both are configured, a signature decides if there is one', () => {
    assert.deepEqual(check(['old', SIGNING], { 'x-gitlab-token': 'old' }), ok);
    assert.deepEqual(check(['old', SIGNING], signed(Buffer.alloc(32, 7))), ok);
    const both = { ...signed(Buffer.alloc(32, 8)), 'x-gitlab-token': 'old' };
    assert.deepEqual(check(['old', SIGNING], both), no('wrong-signature'));
    assert.deepEqual(check(['old'], both), ok);
  });
});

describe('linear', () => {
  const bodyAt = (ms: unknown) => Buffer.from(JSON.stringify({ type: 'Issue', webhookTimestamp: ms }));
  const check = (body: Buffer, { tolerance = undefined as number | undefined, signedBody = body } = {}) => {
    const signature = createHmac('sha256', 'lin_wh_x').update(signedBody).digest('hex');
    const verifier = senderScheme('linear', { tolerance }).verifier(['old', 'lin_wh_x']);
    return verify(verifier, { 'linear-signature': signature }, body, NOW);
  };

  test('the time in the body, within a minute', () => {
    assert.deepEqual(check(bodyAt(NOW)), ok);
    assert.deepEqual(check(bodyAt(NOW - 60_000)), ok);
    assert.deepEqual(check(bodyAt(NOW - 61_000)), no('too-old'));
    assert.deepEqual(check(bodyAt(NOW + 61_000)), no('too-new'));
    assert.deepEqual(check(bodyAt(NOW - 300_000), { tolerance: 300 }), ok);
    assert.deepEqual(check(bodyAt(0), { tolerance: 0 }), ok);
    for (const time of [undefined, '1', null]) assert.deepEqual(check(bodyAt(time)), no('no-timestamp'));
    assert.deepEqual(check(bodyAt(-1)), no('malformed-timestamp'));
    assert.deepEqual(check(Buffer.from('not JSON')), no('no-timestamp'));
  });

  test('a changed byte is found before the time is read', () => {
    assert.deepEqual(check(bodyAt(NOW), { signedBody: bodyAt(NOW - 1) }), no('wrong-signature'));
    assert.deepEqual(check(bodyAt(NOW - 61_000), { signedBody: bodyAt(NOW) }), no('wrong-signature'));
  });
});

describe('twilio', () => {
  // The example of Twilio's documentation.
  const URL_GIVEN = 'https://mycompany.com/myapp.php';
  const QUERY = '?foo=1&bar=2';
  const FIELDS = {
    CallSid: 'CA1234567890ABCDE',
    Caller: '+14158675309',
    Digits: '1234',
    From: '+14158675309',
    To: '+18005551212',
  };
  const SIGNATURE = 'RSOYDt4T1cUTdK1PDd93/VVr8B8=';
  const FORM = 'application/x-www-form-urlencoded';
  const BODY = Buffer.from(new URLSearchParams({ ...FIELDS }).toString());

  const check = (
    body: Uint8Array = BODY,
    {
      url = URL_GIVEN,
      target = `/webhook/calls${QUERY}`,
      contentType = FORM as string | null,
      signature = SIGNATURE as string | null,
      secrets = ['old', '12345'],
    } = {},
  ) => {
    const verifier = senderScheme('twilio', { tolerance: undefined, url }).verifier(secrets);
    return verify(verifier, { 'x-twilio-signature': signature ?? undefined }, body, NOW, {
      target,
      contentType,
    });
  };
  const own = (text: string) => createHmac('sha1', '12345').update(text).digest('base64');

  test('the public vector, whatever the order of the fields', () => {
    assert.deepEqual(check(), ok);
    const turned = new URLSearchParams(Object.entries(FIELDS).toReversed()).toString();
    assert.deepEqual(check(Buffer.from(turned)), ok);
  });

  test('another byte, URL, query or secret', () => {
    assert.deepEqual(check(Buffer.from(BODY.toString().replace('1234&', '1235&'))), no('wrong-signature'));
    assert.deepEqual(check(Buffer.from(`${BODY}&x=1`)), no('wrong-signature'));
    assert.deepEqual(check(BODY, { url: 'https://mycompany.com/other' }), no('wrong-signature'));
    assert.deepEqual(check(BODY, { url: 'http://mycompany.com/myapp.php' }), no('wrong-signature'));
    assert.deepEqual(check(BODY, { target: '/webhook/calls' }), no('wrong-signature'));
    assert.deepEqual(check(BODY, { secrets: ['1234'] }), no('wrong-signature'));
    assert.deepEqual(check(BODY, { signature: null }), no('no-signature'));
    assert.deepEqual(check(BODY, { signature: `${SIGNATURE}=` }), no('malformed-signature'));
  });

  test('with and without the usual port', () => {
    const body = Buffer.from('a=1');
    for (const [signed, url] of [
      ['https://x.example:443/hook', 'https://x.example/hook'],
      ['https://x.example/hook', 'https://x.example:443/hook'],
      ['https://x.example:8443/hook', 'https://x.example:8443/hook'],
      ['https://x.example/hook', 'https://x.example:8443/hook'],
    ] as const) {
      const sent = { url, target: '/webhook/sms', signature: own(`${signed}a1`) };
      assert.deepEqual(check(body, sent), ok, signed);
    }
  });

  test('a repeated field counts once with each value, sorted', () => {
    const signature = own('https://x.example/hooka1a2b');
    const sent = { url: 'https://x.example/hook', target: '/', signature };
    assert.deepEqual(check(Buffer.from('b=&a=2&a=1&a=2'), sent), ok);
  });

  test('JSON with its digest in the query', () => {
    const body = Buffer.from('{"EventType":"onMessageAdded"}');
    const digest = createHash('sha256').update(body).digest('hex');
    const target = `/webhook/chat?bodySHA256=${digest}`;
    const url = 'https://x.example/chat';
    const signature = own(`${url}?bodySHA256=${digest}`);
    const sent = { url, target, signature, contentType: 'application/json' };
    assert.deepEqual(check(body, sent), ok);
    assert.deepEqual(check(Buffer.from(`${body} `), sent), no('wrong-signature'));
    assert.deepEqual(check(body, { ...sent, target: `${target.slice(0, -1)}0` }), no('wrong-signature'));
    assert.deepEqual(check(body, { ...sent, target: '/webhook/chat' }), no('no-body-digest'));
  });

  test('a form is bounded, and UTF-8', () => {
    const sent = { url: 'https://x.example/', target: '/', signature: own('x') };
    assert.deepEqual(check(Buffer.from('a&'.repeat(600_000)), sent), no('malformed-signature'));
    assert.deepEqual(check(Buffer.from([0x61, 0xff]), sent), no('malformed-signature'));
  });
});

describe('discord', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const HEX = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('hex');
  const BODY = Buffer.from('{"type":0}');
  const headers = (timestamp = SECONDS, body: Uint8Array = BODY) => ({
    'x-signature-timestamp': String(timestamp),
    'x-signature-ed25519': sign(
      null,
      Buffer.concat([Buffer.from(String(timestamp)), body]),
      privateKey,
    ).toString('hex'),
  });
  const check = (secrets: readonly string[], sent: RequestHeaders) =>
    verify(senderScheme('discord', usual).verifier(secrets), sent, BODY, NOW);

  test('the public key of the application, in either case', () => {
    const other = '0'.repeat(63);
    assert.deepEqual(check([HEX], headers()), ok);
    assert.deepEqual(check([`${other}1`, HEX.toUpperCase()], headers()), ok);
    assert.deepEqual(check([`${other}1`], headers()), no('wrong-signature'));
    assert.deepEqual(check([HEX], headers(SECONDS, Buffer.from('{"type":1}'))), no('wrong-signature'));
    assert.deepEqual(check([HEX], headers(SECONDS - 301)), no('too-old'));
    assert.deepEqual(
      check([HEX], { ...headers(), 'x-signature-timestamp': String(SECONDS + 1) }),
      no('wrong-signature'),
    );
    assert.deepEqual(check([HEX], { ...headers(), 'x-signature-ed25519': 'ab' }), no('malformed-signature'));
    assert.throws(() => senderScheme('discord', usual).signer([HEX]), UnusableSecretError);
    assert.match(senderSecretProblem('discord', 'abc') ?? '', /64 hexadecimal digits/);
  });

  test('pings of webhook events and of interactions are answered', () => {
    const source = { ...defaultLayout('discord'), scheme: 'discord' } as const;
    assert.deepEqual(readDelivery(source, {}, { type: 0 }), { kind: 'challenge', answer: '' });
    const answer = { kind: 'challenge', answer: '{"type":1}', isJson: true };
    assert.deepEqual(readDelivery(source, {}, { type: 1 }), answer);
    const event = { type: 1, event: { type: 'ENTITLEMENT_CREATE', data: {} } };
    assert.equal(readDelivery(source, {}, event).kind, 'delivery');
  });
});

describe('paypal', () => {
  const WEBHOOK = '8PT597110X687430LKGECATA';
  const authority = makeCertificate('Test Authority');
  const pair = generateKeyPairSync('rsa', { modulusLength: 2_048 });
  const { cert, key } = makeCertificate('messageverificationcerts.paypal.com', authority, pair);
  const URL_OF_CERT = 'https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-7a8d47b5';
  const BODY = Buffer.from('{"id":"WH-1"}');
  const TIME = new Date(NOW).toISOString().replace('.000', '');
  const headers = (changes: RequestHeaders = {}, webhook = WEBHOOK): RequestHeaders => ({
    'paypal-auth-algo': 'SHA256withRSA',
    'paypal-cert-url': URL_OF_CERT,
    'paypal-transmission-id': '69cd13f0-d67a-11e5-baa3-778b53f4ae55',
    'paypal-transmission-time': TIME,
    'paypal-transmission-sig': sign(
      'sha256',
      Buffer.from(`69cd13f0-d67a-11e5-baa3-778b53f4ae55|${TIME}|${webhook}|${crc32(BODY)}`),
      key,
    ).toString('base64'),
    ...changes,
  });
  const loads: string[] = [];
  const certificates = certificateKeys(async (url) => {
    loads.push(url);
    return cert;
  });
  const run = async (
    sent: RequestHeaders,
    { body = BODY, tolerance = 0, now = NOW, secrets = ['OLD1', WEBHOOK], keys = certificates } = {},
  ) => {
    const step = paypal({ tolerance, certificates: keys }).verifier(secrets)(sent, now);
    return typeof step === 'string' ? step : ((await step(body)) ?? 'ok');
  };

  test('the certificate signs id, time, webhook and checksum', async () => {
    assert.equal(await run(headers()), 'ok');
    assert.equal(await run(headers(), { body: Buffer.from('{"id":"WH-2"}') }), 'wrong-signature');
    assert.equal(await run(headers({}, 'OTHER')), 'wrong-signature');
    assert.equal(await run(headers(), { secrets: ['OTHER'] }), 'wrong-signature');
    assert.equal(await run(headers({ 'paypal-transmission-id': 'x' })), 'wrong-signature');
    assert.equal(
      await run(headers({ 'paypal-transmission-time': '2026-03-02T09:30:01Z' })),
      'wrong-signature',
    );
    assert.equal(await run(headers({ 'paypal-transmission-time': 'now' })), 'malformed-timestamp');
    assert.equal(await run(headers({ 'paypal-auth-algo': 'SHA1withRSA' })), 'malformed-signature');
    assert.equal(await run(headers(), { tolerance: 300, now: NOW + 301_000 }), 'too-old');
    assert.equal(await run(headers(), { tolerance: 300, now: NOW + 300_000 }), 'ok');
  });

  test('a certificate is loaded from PayPal alone', async () => {
    loads.length = 0;
    for (const url of [
      'http://api.paypal.com/v1/notifications/certs/CERT-1',
      'https://api.paypal.com.evil.example/v1/notifications/certs/CERT-1',
      'https://evil.example/v1/notifications/certs/CERT-1',
      'https://api.paypal.com@evil.example/v1/notifications/certs/CERT-1',
      'https://api.paypal.com:8443/v1/notifications/certs/CERT-1',
      'https://api.paypal.com/v1/notifications/certs/../../CERT-1',
      'https://api.paypal.com/v1/notifications/certs/CERT-1?x',
      'https://api.paypal.com/v1/notifications/certs/CERT-1\n',
      'urn:portico:test-key',
      '',
    ]) {
      assert.equal(await run(headers({ 'paypal-cert-url': url })), 'wrong-certificate-url', url);
    }
    assert.deepEqual(loads, []);
  });

  test('one download serves all, and a minute sees ten at most', async () => {
    let now = Date.now();
    let count = 0;
    let answer = cert;
    const keys = certificateKeys(
      async () => {
        count++;
        return answer;
      },
      () => now,
    );
    const both = await Promise.all([keys('a'), keys('a')]);
    assert.ok(both[0] !== undefined && both[0] === both[1]);
    await keys('a');
    assert.equal(count, 1);
    answer = 'not a certificate';
    for (let i = 0; i < 20; i++) assert.equal(await keys(`b${i}`), undefined);
    assert.equal(count, 10);
    assert.ok(await keys('a'));
    now += 60_000;
    answer = cert;
    assert.ok(await keys('b0'));
  });

  test('a certificate of another name, or out of its time, has no key', async () => {
    const other = makeCertificate('paypal.com.evil.example', authority, pair).cert;
    assert.equal(
      await certificateKeys(
        async () => other,
        () => Date.now(),
      )('x'),
      undefined,
    );
    assert.equal(
      await certificateKeys(
        async () => cert,
        () => 0,
      )('x'),
      undefined,
    );
    assert.equal(await certificateKeys(() => Promise.reject(new Error('no')))('x'), undefined);
    assert.equal(await run(headers(), { keys: async () => undefined }), 'no-certificate');
  });

  test('a private key signs for tests, and a webhook alone does not', () => {
    assert.throws(() => paypal({ tolerance: 0 }).signer([WEBHOOK]), UnusableSecretError);
    assert.match(senderSecretProblem('paypal', 'a b') ?? '', /ID of the webhook/);
    assert.equal(senderSecretProblem('paypal', key), undefined);
  });
});

/** A sample as `portico send` sends it. */
function sampled(
  sender: Parameters<typeof senderScheme>[0],
  event: string,
  scheme: AnyScheme,
  secrets: readonly string[],
  more: Readonly<Record<string, string>>,
) {
  const layout = defaultLayout(sender);
  const sample = samplesOf(sender).find((each) => each.event === event);
  const data = valueAt(sample?.body, layout.data);
  const body = Buffer.from(buildBody(layout, { event, data, id: 'id-1', sample }));
  const timestamp = Math.floor(Date.now() / 1_000);
  const delivery = { id: 'id-1', event, body, timestamp, headers: more };
  const headers: Record<string, string> = signDelivery(layout, scheme.signer(secrets), delivery);
  return { body, headers };
}

test('each sample has the event of its name, is signed, and verifies', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey;
  const shared = `whsec_${Buffer.alloc(32, 3).toString('base64')}`;
  const url = 'https://x.example/hook';
  const secrets = {
    shopify: ['x'],
    gitlab: ['x'],
    paypal: ['ID', rsa.export({ type: 'pkcs8', format: 'pem' }).toString()],
    twilio: ['x'],
    linear: ['x'],
    clerk: [shared],
    resend: [shared],
    discord: [`whsk_${Buffer.alloc(32, 5).toString('base64')}`],
  } as const;
  for (const [name, own] of Object.entries(secrets)) {
    const sender = name as keyof typeof secrets;
    const scheme: AnyScheme = senderScheme(sender, { tolerance: undefined, url });
    const source = { ...defaultLayout(sender), scheme: sender };
    assert.ok(samplesOf(sender).length >= 2, name);
    for (const { event, headers: more = {} } of samplesOf(sender)) {
      const { body, headers } = sampled(sender, event, scheme, own, more);
      const form = headers['content-type'] === 'application/x-www-form-urlencoded';
      const parsed = form
        ? Object.fromEntries(new URLSearchParams(body.toString()))
        : JSON.parse(body.toString());
      const read = readDelivery(source, headers, parsed);
      assert.equal(read.kind === 'delivery' && read.event, event);
      const hasId = sender === 'discord' ? null : 'id-1';
      assert.equal(read.kind === 'delivery' && read.dedupKey, hasId);
      const request = { target: '/webhook/x', contentType: headers['content-type'] ?? null };
      const verdict = verify(scheme.verifier(own), headers, body, Date.now(), request);
      assert.deepEqual(verdict, ok, `${name} ${event}`);
    }
  }
});
