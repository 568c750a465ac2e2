import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { HandlerSpec } from '../config/schema/module-handlers.ts';
import type { ForwardSettings } from './forward/read-forwards.ts';
import { createJobPlan } from './job-plan.ts';

const handler = () => {};
const forward = (name: string, events?: readonly string[]): ForwardSettings => ({
  name,
  url: new URL('https://example.com'),
  secrets: [],
  events,
  allowPrivate: false,
});
const handlers = new Map<string, HandlerSpec>([
  ['paid', { handler }],
  ['invoice', { handler, order: '/data/customer' }],
  ['whole', { handler, order: '' }],
]);

test('the handler of the event, and every forward address that wants it', () => {
  const plan = createJobPlan(handlers, [
    forward('all'),
    forward('some', ['paid', 'other']),
    forward('none', []),
  ]);
  const targets = (event: string | null) => plan(event, {}).map(({ target }) => target);
  assert.deepEqual(targets('paid'), ['handler:paid', 'forward:all', 'forward:some']);
  assert.deepEqual(targets('other'), ['forward:all', 'forward:some']);
  assert.deepEqual(targets(null), ['forward:all']);
  for (const name of ['toString', 'constructor', '__proto__', '']) {
    assert.deepEqual(createJobPlan(handlers)(name, {}), [], name);
  }
});

test('the key of an order is what stands in the body, told apart by its type', () => {
  const plan = createJobPlan(handlers);
  const key = (customer: unknown) => plan('invoice', { data: { customer } })[0]?.orderKey;
  assert.deepEqual([key('1'), key(1), key(true), key({ a: [1] })], ['"1"', '1', 'true', '{"a":[1]}']);
  assert.deepEqual([key(undefined), key(null)], [null, null]);
  assert.equal(plan('paid', { data: { customer: 1 } })[0]?.orderKey, null);
  for (const body of [undefined, null, 1, 'text', [], {}])
    assert.equal(plan('invoice', body)[0]?.orderKey, null);
});

test('deliveries with the same value have the same key, others another one', () => {
  const plan = createJobPlan(handlers);
  const key = (body: unknown) => plan('whole', body)[0]?.orderKey;
  const value = fc.jsonValue().filter((body) => body !== null);
  fc.assert(
    fc.property(value, value, (one, other) => {
      assert.equal(key(one), key(structuredClone(one)));
      assert.equal(key(one) === key(other), JSON.stringify(one) === JSON.stringify(other));
    }),
  );
});
