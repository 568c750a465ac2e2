import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import type { ClaimedJob } from '../../inbox/delivery.ts';
import { AttemptError } from '../../inbox/dispatch/target.ts';
import { standard } from '../schemes/standard.ts';
import { forwardTarget } from './forward-target.ts';
import { Network } from './network.ts';
import { createPoster } from './post.ts';

const SECRETS = [1, 2].map((byte) => `whsec_${Buffer.alloc(24, byte).toString('base64')}`);
const signal = new AbortController().signal;
const defaults = { concurrency: 3, timeout: 4, maxAttempts: 5, backoff: { base: 1, cap: 2 } };

/** How the receiver answers, and what it got. */
let reply: { readonly status: number; readonly retryAfter?: string | undefined } = { status: 204 };
const got: { readonly headers: Readonly<Record<string, string>>; readonly body: Buffer }[] = [];
const server = createServer(async (request, response) => {
  got.push({ headers: request.headers as Record<string, string>, body: await buffer(request) });
  const { status, retryAfter } = reply;
  response.writeHead(status, retryAfter === undefined ? {} : { 'retry-after': retryAfter }).end();
});
const network = new Network();
const poster = createPoster({ network, allowPrivate: true });
let url = new URL('http://127.0.0.1');
before(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`);
});
after(() => {
  poster[Symbol.dispose]();
  network[Symbol.dispose]();
  server.close();
});

const settings = () => ({ name: 'billing', url, secrets: SECRETS, events: undefined, allowPrivate: true });
const body = Buffer.from('{"event":"paid","data":{"name":"Zoë"}}');
const job: ClaimedJob = {
  job: 1,
  target: 'forward:billing',
  attempt: 2,
  deaths: 0,
  delivery: {
    id: '019a-id',
    source: '',
    event: 'paid',
    dataPointer: '/data',
    contentType: null,
    body,
    receivedAt: 0,
  },
};

/** Runs the job; gives what the receiver got. */
async function run({ signed = true, given = job } = {}) {
  const signature = standard({ headerPrefix: 'webhook', tolerance: 0 });
  const sign = signed ? signature.signer(SECRETS) : undefined;
  await forwardTarget(settings(), defaults, sign, poster).run(given, signal);
  return got.at(-1) ?? assert.fail('nothing came');
}

test('the body goes on byte for byte, signed so that the library of Standard Webhooks takes it', async () => {
  const { headers, body: sent } = await run();
  assert.deepEqual(sent, body);
  assert.deepEqual(
    [headers['webhook-id'], headers['webhook-attempt'], headers['content-type']],
    ['019a-id', '2', 'application/json'],
  );
  for (const secret of SECRETS) {
    assert.deepEqual(new Webhook(secret).verify(body.toString(), headers), JSON.parse(body.toString()));
    assert.throws(() => new Webhook(secret).verify(`${body} `, headers));
  }
});

test('without secrets it is not signed; the content type is the one that came', async () => {
  const given = { ...job, delivery: { ...job.delivery, contentType: 'application/x-www-form-urlencoded' } };
  const { headers } = await run({ signed: false, given });
  assert.equal(headers['webhook-signature'], undefined);
  assert.equal(headers['content-type'], 'application/x-www-form-urlencoded');
});

test('limits of its own come before those of the door', () => {
  const target = forwardTarget({ ...settings(), timeout: 9 }, defaults, undefined, poster);
  const { name, concurrency, timeout, maxAttempts } = target;
  assert.deepEqual([name, concurrency, timeout, maxAttempts], ['forward:billing', 3, 9, 5]);
});

const failure = async (status: number, retryAfter?: string) => {
  reply = { status, retryAfter };
  try {
    await run();
  } catch (error) {
    assert.ok(error instanceof AttemptError);
    assert.equal(error.message, `the receiver answered ${status}`);
    return error.retryAfter;
  }
  return 'no failure';
};

test('2xx is success, everything else is not, and 410 is for good', async () => {
  for (const status of [200, 201, 299]) assert.equal(await failure(status), 'no failure');
  for (const status of [300, 302, 307, 400, 404, 500, 503]) assert.equal(await failure(status), undefined);
  assert.equal(await failure(410), 'never');
});

test('Retry-After counts for those that ask for time, in seconds or as a date', async () => {
  for (const status of [408, 425, 429, 502, 503, 504]) assert.equal(await failure(status, '3'), 3_000);
  const inTen = new Date(Date.now() + 10_000).toUTCString();
  const wait = Number(await failure(429, inTen));
  assert.ok(wait > 8_000 && wait <= 10_000, `${wait}`);
  assert.equal(await failure(500, '3'), undefined);
  assert.equal(await failure(429, 'soon'), undefined);
});
