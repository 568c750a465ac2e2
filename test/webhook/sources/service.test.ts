import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, before, test } from 'node:test';
import { sign } from '@octokit/webhooks-methods';
import { Webhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { rawHttp } from '../../support/connections.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/wait-for.ts';

// The whole way of a signed delivery: the sender's own library, the door, the store, the handler.
const SHARED = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;
const MODULE = `
const show = ({ id, event, source, data }, { log }) => log.info({ id, event, source, data }, 'handled');
export default {
  webhook: {
    sources: {
      standard: { scheme: 'standard', secrets: '${SHARED}' },
      github: { scheme: 'github', secrets: ['new', 'old'] },
      stripe: { scheme: 'stripe', secrets: 'whsec_x' },
      slack: { scheme: 'slack', secrets: 'sl-secret' },
      shop: { scheme: 'hmac', secrets: 'sh-secret', header: 'x-shop' },
      gitlab: { scheme: 'token', secrets: 'gl-secret', header: 'x-gitlab-token', event: { pointer: '/object_kind' }, data: '' },
    },
    handlers: {
      new_commit: show, payment_received: show, message: show, block_actions: show, '/deploy': show,
      order: show, tag_push: show, 'user.created': show,
    },
  },
};
`;

let service: TestService;
before(async () => {
  service = await startTestService({ module: MODULE });
  await service.listen();
});
after(() => service[Symbol.asyncDispose]());

const now = () => Math.floor(Date.now() / 1000);
const hmac = (secret: string, text: string) => createHmac('sha256', secret).update(text).digest('hex');
const slack = (body: string, at = now()) => ({
  'x-slack-request-timestamp': String(at),
  'x-slack-signature': `v0=${hmac('sl-secret', `v0:${at}:${body}`)}`,
});
const stripe = new Stripe('sk_test_unused').webhooks;

async function post(
  source: string,
  body: string,
  headers: Readonly<Record<string, string>>,
): Promise<string> {
  const reply = await fetch(`${service.urls.webhook}/webhook/${source}`, { method: 'POST', body, headers });
  return `${reply.status} ${await reply.text()}`;
}

const RECEIVED = '200 Webhook received';
const REFUSED = '401 Unauthorized';
const handled = (is: (entry: Record<string, unknown>) => boolean) =>
  service.log.entries.filter((entry) => entry.msg === 'handled' && is(entry));
const find = (source: string, key: string, value: unknown) =>
  waitFor(
    `${source} to be handled`,
    () => handled((entry) => entry.source === source && Object(entry.data)[key] === value)[0],
  );

/** One delivery of each scheme as its sender signs it; `mark` stands in its data. */
const senders: Readonly<
  Record<string, (mark: string) => Promise<{ body: string; headers: Record<string, string>; event: string }>>
> = {
  standard: async (mark) => {
    const body = JSON.stringify({ type: 'user.created', data: { mark } });
    const at = now();
    const headers = {
      'webhook-id': `msg_${mark}`,
      'webhook-timestamp': String(at),
      'webhook-signature': new Webhook(SHARED).sign(`msg_${mark}`, new Date(at * 1000), body),
    };
    return { body, headers, event: 'user.created' };
  },
  github: async (mark) => {
    const body = JSON.stringify({ mark });
    const headers = {
      'x-github-event': 'push',
      'x-github-delivery': mark,
      'x-hub-signature-256': await sign('old', body),
    };
    return { body, headers, event: 'new_commit' };
  },
  stripe: async (mark) => {
    const payload = JSON.stringify({ id: `evt_${mark}`, type: 'payment_intent.succeeded', data: { mark } });
    const signature = stripe.generateTestHeaderString({ payload, secret: 'whsec_x' });
    return { body: payload, headers: { 'stripe-signature': signature }, event: 'payment_received' };
  },
  slack: async (mark) => {
    const body = JSON.stringify({ event_id: `Ev${mark}`, event: { type: 'message', mark } });
    return { body, headers: slack(body), event: 'message' };
  },
  shop: async (mark) => {
    const body = JSON.stringify({ event: 'order', data: { mark } });
    return { body, headers: { 'x-shop': hmac('sh-secret', body), 'idempotency-key': mark }, event: 'order' };
  },
  gitlab: async (mark) => {
    const body = JSON.stringify({ object_kind: 'tag_push', mark });
    return { body, headers: { 'x-gitlab-token': 'gl-secret', 'idempotency-key': mark }, event: 'tag_push' };
  },
};

for (const [source, make] of Object.entries(senders)) {
  test(`${source}: signed by its sender it is handled once however often it comes, forged it is refused`, async () => {
    const { body, headers, event } = await make(`${source}-1`);
    for (let i = 0; i < 3; i++) assert.equal(await post(source, body, headers), RECEIVED);
    const entry = await find(source, 'mark', `${source}-1`);
    assert.equal(entry.event, event);

    const [name = '', value = ''] =
      Object.entries(headers).find(([key]) => /signature|x-shop|token/.test(key)) ?? [];
    const last = value.at(-1) === 'A' ? 'B' : 'A';
    const wrong = name === 'x-gitlab-token' ? 'other' : value.replace(/[0-9a-f]{8}/, '00000000');
    assert.equal(
      await post(source, body, { ...headers, [name]: wrong === value ? value.slice(0, -1) + last : wrong }),
      REFUSED,
    );
    const { [name]: _gone, ...without } = headers;
    assert.equal(await post(source, body, without), REFUSED);
    if (source !== 'gitlab') assert.equal(await post(source, body.replace('-1', '-2'), headers), REFUSED);

    // What comes later of the same source is handled, and the first one was handled once by then.
    const later = await make(`${source}-3`);
    assert.equal(await post(source, later.body, later.headers), RECEIVED);
    await find(source, 'mark', `${source}-3`);
    assert.equal(handled((each) => each.source === source).length, 2);
  });
}

test('every payment event of Stripe is a payment that was received', async () => {
  for (const type of ['charge.succeeded', 'invoice.paid', 'invoice.payment_succeeded']) {
    const payload = JSON.stringify({ id: type, type, data: { type } });
    const signature = stripe.generateTestHeaderString({ payload, secret: 'whsec_x' });
    assert.equal(await post('stripe', payload, { 'stripe-signature': signature }), RECEIVED);
    assert.equal((await find('stripe', 'type', type)).event, 'payment_received');
  }
});

test('what is too old or too new is refused, in both directions', async () => {
  for (const [offset, answer] of [
    [-290, RECEIVED],
    [-310, REFUSED],
    [290, RECEIVED],
    [310, REFUSED],
  ] as const) {
    const body = JSON.stringify({ event: { type: 'message', offset } });
    assert.equal(await post('slack', body, slack(body, now() + offset)), answer, `slack ${offset}`);
    const timestamp = now() + offset;
    const signature = stripe.generateTestHeaderString({ payload: body, secret: 'whsec_x', timestamp });
    assert.equal(await post('stripe', body, { 'stripe-signature': signature }), answer, `stripe ${offset}`);
    const headers = {
      'webhook-id': `t${offset}`,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': new Webhook(SHARED).sign(`t${offset}`, new Date(timestamp * 1000), body),
    };
    assert.equal(await post('standard', body, headers), answer, `standard ${offset}`);
  }
});

test('a form of GitHub is the JSON in it, signed over its bytes', async () => {
  const json = JSON.stringify({ ref: 'form', message: 'é & + %' });
  const body = new URLSearchParams({ payload: json }).toString();
  const headers = {
    'content-type': 'application/x-www-form-urlencoded',
    'x-github-event': 'push',
    'x-hub-signature-256': await sign('new', body),
  };
  assert.equal(await post('github', body, headers), RECEIVED);
  const { event, data } = await find('github', 'ref', 'form');
  assert.deepEqual([event, data], ['new_commit', { ref: 'form', message: 'é & + %' }]);
  assert.equal(await post('github', body.replace('form', 'from'), headers), REFUSED);
  // The same text in other escapes is another body.
  assert.equal(await post('github', body.replace('+', '%20'), headers), REFUSED);
});

test('a command and an interaction of Slack', async () => {
  const type = { 'content-type': 'application/x-www-form-urlencoded' };
  const command = 'command=%2Fdeploy&text=now+please&trigger_id=1';
  assert.equal(await post('slack', command, { ...type, ...slack(command) }), RECEIVED);
  const { event, data } = await find('slack', 'trigger_id', '1');
  assert.deepEqual([event, data], ['/deploy', { command: '/deploy', text: 'now please', trigger_id: '1' }]);

  const click = `payload=${encodeURIComponent('{"type":"block_actions","trigger_id":"2","actions":[{"value":"x"}]}')}`;
  assert.equal(await post('slack', click, { ...type, ...slack(click) }), RECEIVED);
  const clicked = await find('slack', 'trigger_id', '2');
  assert.deepEqual(clicked.data, { type: 'block_actions', trigger_id: '2', actions: [{ value: 'x' }] });
});

test('a form that is none, or whose payload is no JSON, is a 400', async () => {
  const type = { 'content-type': 'application/x-www-form-urlencoded' };
  for (const [body, text] of [
    ['a=%ff', '400 The form is malformed'],
    ['payload=%7Bnope', '400 The JSON is malformed'],
  ] as const) {
    assert.equal(await post('slack', body, { ...type, ...slack(body) }), text);
  }
});

test('Slack is answered when it asks whose address this is', async () => {
  const body = JSON.stringify({ type: 'url_verification', challenge: 'c-1' });
  assert.equal(await post('slack', body, slack(body)), '200 c-1');
});

test('headers that say it all are refused before the body has come', async () => {
  for (const source of ['standard', 'github', 'stripe', 'slack', 'shop', 'gitlab']) {
    const head = `POST /webhook/${source} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n`;
    const reply = await rawHttp(service.urls.webhook ?? '', [Buffer.from(head)]);
    assert.equal(reply.status, 401, source);
  }
});
