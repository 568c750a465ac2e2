import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import type { Answer } from '../../inbox/attempts.ts';
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
interface Scripted {
  readonly status: number;
  readonly retryAfter?: string | undefined;
  readonly text?: string;
}
let reply: Scripted = { status: 204 };
const got: { readonly headers: Readonly<Record<string, string>>; readonly body: Buffer }[] = [];
const server = createServer(async (request, response) => {
  got.push({ headers: request.headers as Record<string, string>, body: await buffer(request) });
  const { status, retryAfter, text } = reply;
  response.writeHead(status, retryAfter === undefined ? {} : { 'retry-after': retryAfter }).end(text);
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
  ordered: false,
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

const answers: Answer[] = [];

/** Runs the job; gives what the receiver got. */
async function run({ signed = true, given = job } = {}) {
  const signature = standard({ headerPrefix: 'webhook', tolerance: 0 });
  const sign = signed ? signature.signer(SECRETS) : undefined;
  answers.length = 0;
  const target = forwardTarget(settings(), defaults, sign, poster, { maxBodyBytes: 1 });
  await target.run(given, signal, (answer) => answers.push(answer));
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

test('kept headers are sent on, but for those of the connection and those of its own', async () => {
  const headers = JSON.stringify({
    'x-github-event': 'push',
    'x-note': 'caf\u00e9',
    host: 'elsewhere.example',
    'content-length': '3',
    'transfer-encoding': 'chunked',
    'webhook-id': 'of the sender',
    'user-agent': 'sender',
  });
  const { headers: sent, body: got } = await run({
    given: { ...job, delivery: { ...job.delivery, headers } },
  });
  assert.deepEqual(got, body);
  assert.equal(sent['x-github-event'], 'push');
  assert.equal(sent['x-note'], 'caf\u00e9');
  assert.equal(sent['webhook-id'], '019a-id');
  assert.equal(sent['user-agent'], 'Portico');
  assert.equal(sent.host, url.host);
});

test('what the receiver answers is told, success or not, and cut after a kilobyte', async () => {
  reply = { status: 201, text: 'thanks' };
  await run();
  assert.deepEqual(answers, [
    { status: 201, body: '' },
    { status: 201, body: 'thanks' },
  ]);
  // The character at the edge has two bytes.
  reply = { status: 500, text: `${'x'.repeat(1_023)}\u00e9${'y'.repeat(100_000)}` };
  await assert.rejects(run(), /answered 500/);
  assert.deepEqual(answers.at(-1), { status: 500, body: 'x'.repeat(1_023) });
  reply = { status: 200 };
  await run();
  assert.deepEqual(answers.at(-1), { status: 200, body: '' });
});

test('limits of its own come before those of the door', () => {
  const given = { ...settings(), timeout: 9 };
  const target = forwardTarget(given, defaults, undefined, poster, { maxBodyBytes: 1 });
  const { name, concurrency, timeout, maxAttempts } = target;
  assert.deepEqual([name, concurrency, timeout, maxAttempts], ['forward:billing', 3, 9, 5]);
  const limited = { ...given, rate: { perMs: 1, burst: 7 } };
  const { gate } = forwardTarget(limited, defaults, undefined, poster, { maxBodyBytes: 1 });
  assert.equal(gate?.free, 7);
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
