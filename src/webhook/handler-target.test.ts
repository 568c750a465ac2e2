import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HandlerSpec } from '../config/schema/module-handlers.ts';
import type { ClaimedJob, Delivery } from '../inbox/delivery.ts';
import type { HandlerContext } from '../inbox/handler.ts';
import { handlerTarget } from './handler-target.ts';

const defaults = { concurrency: 16, timeout: 30_000, maxAttempts: 10, backoff: { base: 1, cap: 2 } };
const silent = { debug() {}, info() {}, warn() {}, error() {} };
const target = (spec: HandlerSpec) => handlerTarget('paid', spec, defaults, () => silent);

function job(body: string, dataPointer: string, changes: Partial<ClaimedJob['delivery']> = {}): ClaimedJob {
  const delivery = {
    id: 'id-1',
    source: 'shop',
    event: 'orders/paid',
    dataPointer,
    contentType: null,
    body: Buffer.from(body),
    receivedAt: 1_700_000_000_000,
    ...changes,
  };
  return { job: 1, target: 'handler:paid', attempt: 3, deaths: 0, ordered: false, delivery };
}

/** What the handler of a job is given. */
async function given(claimed: ClaimedJob): Promise<Delivery> {
  const got: Delivery[] = [];
  const handler = (delivery: Delivery) => void got.push(delivery);
  await target({ handler }).run(claimed, new AbortController().signal, () => {});
  return got[0] ?? assert.fail('it was not called');
}

test('a handler has the limits that it names, and those of the door for the rest', () => {
  const handler = () => {};
  const { name, concurrency, timeout, maxAttempts } = target({ handler });
  assert.deepEqual([name, concurrency, timeout, maxAttempts], ['handler:paid', 16, 30_000, 10]);
  const own = target({ handler, concurrency: 2, timeout: 5, attempts: 1 });
  assert.deepEqual([own.concurrency, own.timeout, own.maxAttempts], [2, 5, 1]);
});

test('it gets its delivery under its own name for the event, with the data that the pointer finds and the whole body', async () => {
  const { data, body, ...rest } = await given(job('{"data":{"a/b":[1,{"n":7}]}}', '/data/a~1b/1'));
  assert.deepEqual([data, body], [{ n: 7 }, { data: { 'a/b': [1, { n: 7 }] } }]);
  const receivedAt = new Date(1_700_000_000_000);
  const names = { event: 'paid', senderEvent: 'paid' };
  assert.deepEqual(rest, { id: 'id-1', source: 'shop', ...names, headers: {}, receivedAt, attempt: 3 });
  const sent = await given(job('{}', '', { event: 'paid', senderEvent: 'orders/paid' }));
  assert.deepEqual([sent.event, sent.senderEvent], ['paid', 'orders/paid']);
  const headers = '{"x-event":"paid"}';
  assert.deepEqual((await given(job('{}', '', { headers }))).headers, { 'x-event': 'paid' });
  assert.deepEqual((await given(job('[1]', ''))).data, [1]);
  assert.equal((await given(job('{}', '/data'))).data, undefined);
  assert.equal((await given(job('null', '/data'))).data, undefined);
});

test('the data of a form are those of its payload, or its fields', async () => {
  const contentType = 'application/x-www-form-urlencoded';
  const form = `payload=${encodeURIComponent('{"data":{"n":7}}')}`;
  assert.deepEqual((await given(job(form, '/data', { contentType }))).data, { n: 7 });
  assert.deepEqual((await given(job('a=1&b=2', '', { contentType }))).data, { a: '1', b: '2' });
});

test('it gets the signal and the log, and its failure is that of the attempt', async () => {
  const { signal } = new AbortController();
  let context: HandlerContext | undefined;
  const spec: HandlerSpec = {
    handler: (_delivery, got) => {
      context = got;
      return Promise.reject(new Error('not now'));
    },
  };
  await assert.rejects(async () => target(spec).run(job('{}', ''), signal, () => {}), /not now/);
  assert.deepEqual([context?.signal, context?.log], [signal, silent]);
});
