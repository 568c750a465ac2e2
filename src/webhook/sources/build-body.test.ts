import assert from 'node:assert/strict';
import { test } from 'node:test';
import { valueAt } from '../../core/json-pointer.ts';
import { UnsignableError } from '../schemes/scheme-error.ts';
import { buildBody } from './build-body.ts';
import { defaultLayout } from './defaults.ts';
import { readDelivery } from './read-delivery.ts';
import type { SourceLayout } from './source.ts';

const layouts = {
  token: defaultLayout('token'),
  standard: defaultLayout('standard'),
  github: defaultLayout('github'),
  stripe: defaultLayout('stripe'),
  slack: defaultLayout('slack'),
};
const build = (layout: SourceLayout, data: unknown) =>
  JSON.parse(Buffer.from(buildBody(layout, { event: 'paid', data, id: 'evt_1' })).toString());

test('the body of each scheme', () => {
  const data = { amount: 7 };
  assert.deepEqual(build(layouts.token, data), { event: 'paid', data });
  assert.deepEqual(build(layouts.standard, data), { type: 'paid', data });
  assert.deepEqual(build(layouts.github, data), data);
  assert.deepEqual(build(layouts.stripe, data), { id: 'evt_1', type: 'paid', data });
  assert.deepEqual(build(layouts.slack, data), { event_id: 'evt_1', event: { amount: 7, type: 'paid' } });
});

test('what the receiver reads is what was sent', () => {
  for (const [scheme, layout] of Object.entries(layouts)) {
    const body = build(layout, { amount: 7 });
    const headers = {
      'x-github-event': 'paid',
      'x-github-delivery': 'evt_1',
      'webhook-id': 'evt_1',
      'idempotency-key': 'evt_1',
    };
    const read = readDelivery({ ...layout, scheme: 'token' }, headers, body);
    assert.ok(read.kind === 'delivery');
    assert.deepEqual([read.event, read.dedupKey], ['paid', 'evt_1'], scheme);
    assert.deepEqual(
      valueAt(body, read.pointer),
      scheme === 'slack' ? { amount: 7, type: 'paid' } : { amount: 7 },
      scheme,
    );
  }
});

test('data of any kind, unless the sender puts more into them', () => {
  assert.deepEqual(build(layouts.token, [1]), { event: 'paid', data: [1] });
  assert.equal(build(layouts.github, 'text'), 'text');
  assert.throws(() => build(layouts.slack, 'text'), UnsignableError);
  assert.throws(() => build(layouts.slack, [1]), UnsignableError);
});
